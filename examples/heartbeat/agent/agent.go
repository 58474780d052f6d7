// Package agent is the add-on's part on a managed cluster. It writes a
// heartbeat to the hub, in the ConfigMap of Name of the add-on in the cluster's
// namespace, and keeps the lease on its own cluster that makes the add-on
// Available.
//
// It reads its credential again whenever the mounted Secret changes, so it
// outlives every renewal and every switch between client certificates and
// tokens without a restart.
package agent

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"

	"open-cluster-management.io/addon-framework/pkg/lease"
)

// Options are what the command line says.
type Options struct {
	// Kubeconfig is the managed cluster's; empty means in-cluster.
	Kubeconfig string
	// HubKubeconfig is a file in the mounted Secret.
	HubKubeconfig string
	Cluster       string
	AddOn         string
	// Namespace is where the add-on is installed, and where its lease is.
	Namespace string
	// Interval is Interval between two heartbeats.
	Interval time.Duration
}

// Run sends heartbeats until ctx ends.
func Run(ctx context.Context, options Options) error {
	if options.Namespace == "" {
		return errors.New("the namespace is required; set --namespace or the environment variable POD_NAMESPACE")
	}
	config, err := clientcmd.BuildConfigFromFlags("", options.Kubeconfig)
	if err != nil {
		return err
	}
	managed, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	go lease.NewLeaseUpdater(managed, options.AddOn, options.Namespace).Start(ctx)

	h := &heart{Options: options, clock: clock.RealClock{}, hub: connection{path: options.HubKubeconfig}}
	ticker := h.clock.NewTicker(options.Interval)
	defer ticker.Stop()
	for {
		h.beat(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
	}
}

// heart counts its beats.
type heart struct {
	Options
	clock clock.WithTicker
	hub   connection
	// sequence counts attempts, missed those that failed, and of them refused those
	// whose credential or rights were not good enough, and slow those that a busy hub
	// did not answer in time.
	sequence, missed, refused, slow int
	// failure is why the last one that was missed failed.
	failure string
	// last is when the hub took a heartbeat, longest the most time between two.
	last    time.Time
	longest time.Duration
}

// beat tries once. What fails is tried again in the next interval: a heartbeat
// that comes late is worth nothing.
func (h *heart) beat(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, max(h.Interval, 5*time.Second))
	defer cancel()
	h.sequence++
	if err := h.send(ctx); err != nil {
		h.missed++
		h.failure = err.Error()
		switch {
		case apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err):
			h.refused++
		case errors.Is(err, context.DeadlineExceeded) || apierrors.IsTimeout(err):
			h.slow++
		}
		slog.Error("no heartbeat", "sequence", h.sequence, "error", err)
	}
}

func (h *heart) send(ctx context.Context) error {
	client, err := h.hub.client(ctx)
	if err != nil {
		return err
	}
	now := h.clock.Now()
	longest := h.longest
	if !h.last.IsZero() {
		longest = max(longest, now.Sub(h.last))
	}
	beat := corev1apply.ConfigMap(h.AddOn, h.Cluster).WithData(map[string]string{
		"sequence":   strconv.Itoa(h.sequence),
		"missed":     strconv.Itoa(h.missed),
		"refused":    strconv.Itoa(h.refused),
		"slow":       strconv.Itoa(h.slow),
		"failure":    h.failure,
		"longestGap": longest.String(),
		"time":       now.UTC().Format(time.RFC3339Nano),
		"user":       h.hub.user,
		"credential": h.hub.kind,
	})
	_, err = client.CoreV1().ConfigMaps(h.Cluster).Apply(ctx, beat, metav1.ApplyOptions{FieldManager: h.AddOn, Force: true})
	if err != nil {
		return err
	}
	h.last, h.longest = now, longest
	return nil
}
