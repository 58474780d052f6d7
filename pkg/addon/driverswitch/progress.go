package driverswitch

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/inventory"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// Cluster reads the registrations of a managed cluster from the hub, and their Secrets from
// the cluster.
type Cluster struct {
	Name string
	// Managed and Hub are clients, of the managed cluster and with the agent's permissions
	// on the hub.
	Managed, Hub client.Client
	// Driver is the one to register with.
	Driver driver.AuthType
}

// Progress returns how many kubeClient registrations have a credential of the driver, and
// those that have none. Each of these has a message.
func (s Cluster) Progress(ctx context.Context, now time.Time) (done int, pending []inventory.Registration, err error) {
	objs, err := inventory.Objects(ctx, s.Hub, inventory.Filter{Clusters: []string{s.Name}})
	if err != nil {
		return 0, nil, err
	}
	for _, obj := range objs {
		for _, r := range inventory.Describe(obj, inventory.Facts{Now: now}).Registrations {
			if r.Type != string(addonv1beta1.KubeClient) || r.Reason == inventory.ReasonDeleting {
				continue
			}
			if r.Message, err = s.missing(ctx, r); err != nil {
				return 0, nil, err
			}
			if r.Message != "" {
				pending = append(pending, r)
				continue
			}
			done++
		}
	}
	return done, pending, nil
}

// missing returns what a registration lacks, or "".
func (s Cluster) missing(ctx context.Context, r inventory.Registration) (string, error) {
	switch {
	case r.Driver != string(s.Driver):
		return "waits for the agent to declare driver " + string(s.Driver), nil
	case r.State != inventory.Ready:
		return r.Message, nil
	case r.HostingCluster != "" && r.HostingCluster != s.Name:
		return "", nil // Its Secret is on another cluster.
	}
	var secret corev1.Secret
	err := s.Managed.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: r.Secret}, &secret)
	switch {
	case apierrors.IsForbidden(err):
		return "", nil // Only the hub's report is known.
	case apierrors.IsNotFound(err):
		return fmt.Sprintf("waits for Secret %s/%s", r.Namespace, r.Secret), nil
	case err != nil:
		return "", fmt.Errorf("secret %s/%s: %w", r.Namespace, r.Secret, err)
	}
	needed := names.KeyTLSCert
	if s.Driver == driver.Token {
		needed = names.KeyToken
	}
	if len(secret.Data[needed]) == 0 {
		return fmt.Sprintf("waits for %s in Secret %s/%s", needed, r.Namespace, r.Secret), nil
	}
	return "", nil
}
