package registry

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Key is the key of the hosts in a ConfigMap, separated by space or commas, each as
// HOST or as HOST=AUDIENCE.
const Key = "hosts"

// Reasons of events about the ConfigMap.
const (
	ReasonHostsInvalid = "RegistryHostsInvalid"
	ReasonNoHosts      = "NoRegistryHosts"
)

// Reconciler takes hosts from a ConfigMap.
type Reconciler struct {
	// Client reads from the cache.
	Client client.Reader
	// ConfigMap is where the hosts are.
	ConfigMap types.NamespacedName
	// Hosts has what else there is, and Found is kept up to date.
	Hosts *Hosts
	Found *Source
	// Events says what is wrong with the ConfigMap.
	Events events.EventRecorder
}

// configMapCache limits a cache to the one ConfigMap.
func configMapCache(configMap types.NamespacedName) cache.ByObject {
	return cache.ByObject{
		Namespaces: map[string]cache.Config{configMap.Namespace: {}},
		Field:      fields.OneTermEqualSelector("metadata.name", configMap.Name),
	}
}

// SetupWithManager starts the controller with mgr.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("pullsecret.registry").
		For(&corev1.ConfigMap{}).
		WatchesRawSource(source.Func(once)).
		Complete(r)
}

// once has a controller look although there is no object yet: that is an answer.
func once(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	queue.Add(reconcile.Request{})
	return nil
}

// Reconcile implements reconcile.Reconciler. Hosts that cannot be read leave the
// list as it is; a ConfigMap that is gone has none.
func (r *Reconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	var found corev1.ConfigMap
	err := r.Client.Get(ctx, r.ConfigMap, &found)
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	}
	if invalid := r.Found.report(ctx, strings.FieldsFunc(found.Data[Key], separates)); invalid != nil {
		r.warn(&found, ReasonHostsInvalid, fmt.Sprintf("%v; pull secrets retain the previous hosts", invalid))
		return ctrl.Result{}, nil
	}
	if len(r.Hosts.List()) == 0 && !apierrors.IsNotFound(err) {
		r.warn(&found, ReasonNoHosts, "No registry host is configured, so no pull secret is written until this ConfigMap has one under the key "+Key)
	}
	return ctrl.Result{}, nil
}

func (r *Reconciler) warn(found *corev1.ConfigMap, reason, message string) {
	regarding := &corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: found.Namespace, Name: found.Name, UID: found.UID}
	r.Events.Eventf(regarding, nil, corev1.EventTypeWarning, reason, "PullSecrets", "%s", message)
}

func separates(r rune) bool { return strings.ContainsRune(" \t\r\n,", r) }
