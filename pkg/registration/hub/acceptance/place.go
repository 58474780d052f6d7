package acceptance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/internal/clusterpatch"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/internal/rbac"
)

// usable reports why a cluster of this name cannot be accepted. Admission
// refuses such names as well; here it is made sure that no agent is given
// rights in a namespace that is not meant for a cluster.
func usable(name string) error {
	if err := names.ValidateClusterName(name); err != nil {
		return err
	}
	kubernetes := []string{metav1.NamespaceSystem, metav1.NamespacePublic, corev1.NamespaceNodeLease}
	if slices.Contains(kubernetes, name) || strings.HasPrefix(name, names.OperatorNamespace) {
		return fmt.Errorf("%w %q: the namespace of that name is not a cluster's", names.ErrClusterName, name)
	}
	return nil
}

// ensureFinalizers holds the cluster until everything made for it is gone: by
// this controller and, when that is on, by garbage collection.
func (r *Reconciler) ensureFinalizers(ctx context.Context, cluster *clusterv1.ManagedCluster) error {
	want := slices.Clone(cluster.Finalizers)
	needed := []string{names.FinalizerRegistration}
	if r.CollectGarbage {
		needed = append(needed, names.FinalizerResourceCleanup)
	}
	for _, finalizer := range needed {
		if !slices.Contains(want, finalizer) {
			want = append(want, finalizer)
		}
	}
	return clusterpatch.Finalizers(ctx, r.Client, Owner, cluster, want)
}

// errForeign is about a namespace that is not the cluster's. That changes only
// when somebody hands it over, which the controller sees.
var errForeign = errors.New("is not a cluster's")

// ensureNamespace makes the namespace of the cluster, or repairs its labels. One
// that exists is the cluster's only if it says so.
func (r *Reconciler) ensureNamespace(ctx context.Context, cluster *clusterv1.ManagedCluster) error {
	labels := rbac.Labels(cluster.Name, r.Labels)
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	err := r.Client.Get(ctx, client.ObjectKey{Name: cluster.Name}, live)
	if apierrors.IsNotFound(err) {
		made := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: cluster.Name, Labels: labels}}
		if err = r.Client.Create(ctx, made, Owner); !apierrors.IsAlreadyExists(err) {
			return err
		}
		err = r.Live.Get(ctx, client.ObjectKey{Name: cluster.Name}, live) // The cache holds those of clusters only.
	}
	switch {
	case err != nil:
		return err
	case live.DeletionTimestamp != nil:
		return fmt.Errorf("namespace %s is being deleted: waiting until it is gone", cluster.Name)
	case rbac.HasLabels(live, labels):
		return nil
	case live.Labels[names.LabelClusterName] != cluster.Name:
		if err := r.had(ctx, cluster); err != nil {
			return err
		}
	}
	config := corev1ac.Namespace(cluster.Name).WithLabels(labels)
	if err := r.Client.Apply(ctx, config, Owner, client.ForceOwnership); err != nil {
		return fmt.Errorf("namespace %s: %w", cluster.Name, err)
	}
	return nil
}

// had returns an error unless a namespace without the label of a cluster was the
// cluster's already, and lost its label by mistake. That is so for a cluster that
// was accepted, which the cache may not show yet; nothing would look again when it
// does.
func (r *Reconciler) had(ctx context.Context, cluster *clusterv1.ManagedCluster) error {
	now := &clusterv1.ManagedCluster{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(cluster), now); err != nil {
		return err
	}
	if apimeta.IsStatusConditionTrue(now.Status.Conditions, clusterv1.ManagedClusterConditionHubAccepted) {
		return nil
	}
	return fmt.Errorf("the namespace %[1]s exists and %[2]w; hand it over with: kubectl label namespace %[1]s --overwrite %[3]s=%[1]s",
		cluster.Name, errForeign, names.LabelClusterName)
}

// ensureLease makes the lease that the agent renews and cannot create. It is
// never written again: from then on it is the agent's.
func (r *Reconciler) ensureLease(ctx context.Context, cluster string) (made bool, err error) {
	key := client.ObjectKey{Namespace: cluster, Name: names.ManagedClusterLease}
	if err := r.Client.Get(ctx, key, &coordinationv1.Lease{}); !apierrors.IsNotFound(err) {
		return false, err
	}
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: key.Namespace, Name: key.Name, Labels: rbac.Labels(cluster, nil),
		},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: new(names.ManagedClusterLease),
			RenewTime:      &metav1.MicroTime{Time: r.Clock.Now()},
		},
	}
	err = r.Client.Create(ctx, lease, Owner)
	if apierrors.IsAlreadyExists(err) {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("lease of cluster %s: %w", cluster, err)
	}
	return true, nil
}
