package acceptance

import (
	"context"
	"errors"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/mergepatch"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/internal/clusterpatch"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/internal/event"
)

// Owner is the field manager of everything this controller writes.
const Owner client.FieldOwner = "ocm.acceptance"

// Reconciler accepts, denies and detaches clusters.
type Reconciler struct {
	// Client writes, and reads from the cache.
	Client client.Client
	// Live reads from the API server, where stale data would leave orphaned objects.
	Live client.Reader
	// Drivers are the enabled registration drivers.
	Drivers []driver.Hub
	// IdentityAnnotations are the annotations that identify clusters to registration
	// drivers.
	IdentityAnnotations []string
	// AutoApprove is the feature gate ManagedClusterAutoApproval.
	AutoApprove bool
	// CollectGarbage is the feature gate ResourceCleanup.
	CollectGarbage bool
	// Labels are put on the namespace and the RBAC of every cluster.
	Labels map[string]string
	// Clock dates conditions, leases and annotations.
	Clock clock.PassiveClock
	// Recorder records events.
	Recorder event.Recorder

	// reported is why clusters were not accepted automatically, by their name.
	reported sync.Map
}

// decision is the action for a cluster that is not being deleted.
type decision int

const (
	// leave: the cluster was never accepted, so it has no resources on the hub.
	leave decision = iota
	accept
	deny
)

// decide compares the spec with the state of the hub. A cluster whose acceptance was
// interrupted has our finalizer if it has any resource.
func decide(cluster *clusterv1.ManagedCluster) decision {
	switch {
	case cluster.Spec.HubAcceptsClient:
		return accept
	case slices.Contains(cluster.Finalizers, names.FinalizerRegistration),
		apimeta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1.ManagedClusterConditionHubAccepted):
		return deny
	}
	return leave
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return mergepatch.Settled(r.reconcile(ctx, req))
}

func (r *Reconciler) reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	cluster := &clusterv1.ManagedCluster{}
	err := r.Client.Get(ctx, req.NamespacedName, cluster)
	if apierrors.IsNotFound(err) {
		r.reported.Delete(req.Name)
		return ctrl.Result{}, r.sweep(ctx, req.Name)
	} else if err != nil {
		return ctrl.Result{}, err
	}
	if cluster.DeletionTimestamp != nil {
		return r.detach(ctx, cluster)
	}
	if done, err := r.autoAccept(ctx, cluster); done || err != nil {
		return ctrl.Result{}, err
	}
	switch decide(cluster) {
	case accept:
		return ctrl.Result{}, r.accept(ctx, cluster)
	case deny:
		return ctrl.Result{}, r.deny(ctx, cluster)
	case leave:
	}
	return r.recordAgent(ctx, cluster.Name)
}

// autoAccept accepts a cluster automatically, once. The annotation stays, so that a
// later denial by an administrator persists, as does a denial from before the
// feature gate was enabled.
func (r *Reconciler) autoAccept(ctx context.Context, cluster *clusterv1.ManagedCluster) (done bool, err error) {
	_, decided := cluster.Annotations[names.AnnotationAutoAccepted]
	if decided || !r.AutoApprove || decide(cluster) == deny {
		return false, nil
	}
	accepted := cluster.Spec.HubAcceptsClient
	for _, d := range r.Drivers {
		why := d.Objection(cluster)
		if why == "" {
			continue
		}
		if !accepted {
			r.reportNotAccepted(cluster, why)
		}
		return false, nil
	}
	now := credential.Timestamp(r.Clock.Now())
	if err := clusterpatch.Accept(ctx, r.Client, Owner, cluster, names.AnnotationAutoAccepted, now); err != nil {
		return false, err
	}
	if !accepted {
		r.Recorder.Normal(cluster, "ManagedClusterAutoApproved", "Accept", "Accepted automatically: the feature gate ManagedClusterAutoApproval is enabled")
	}
	return true, nil
}

// reportNotAccepted reports once per start of the hub why a cluster is not accepted
// automatically.
func (r *Reconciler) reportNotAccepted(cluster *clusterv1.ManagedCluster, why string) {
	if last, _ := r.reported.Swap(cluster.Name, why); last != why {
		r.Recorder.Normal(cluster, "ManagedClusterNotAutoApproved", "Accept", "Not accepted automatically: "+why)
	}
}

// accept ensures the resources of an accepted cluster, in the order of the package
// documentation, and then sets the conditions.
func (r *Reconciler) accept(ctx context.Context, cluster *clusterv1.ManagedCluster) error {
	if err := validateName(cluster.Name); err != nil {
		_, patchErr := r.condition(ctx, cluster, metav1.ConditionFalse, names.ReasonHubError, err.Error())
		return patchErr
	}
	leaseCreated, err := r.ensureResources(ctx, cluster)
	if err != nil {
		return r.failed(ctx, cluster, err)
	}
	conditions := accepted(metav1.ConditionTrue, names.ReasonHubAccepted, names.MessageHubAccepted)
	if leaseCreated {
		conditions = append(conditions, clockSynced())
	}
	_, err = clusterpatch.Conditions(ctx, r.Client, Owner, cluster, r.Clock.Now(), conditions...)
	return err
}

// ensureResources creates everything for an accepted cluster except the conditions.
func (r *Reconciler) ensureResources(ctx context.Context, cluster *clusterv1.ManagedCluster) (leaseCreated bool, err error) {
	if err := r.ensureFinalizers(ctx, cluster); err != nil {
		return false, err
	}
	if err := r.ensureNamespace(ctx, cluster); err != nil {
		return false, err
	}
	if err := r.ensureBindings(ctx, cluster); err != nil {
		return false, err
	}
	return r.ensureLease(ctx, cluster.Name)
}

// ensureBindings ensures the bindings of an accepted cluster. A detached cluster waits
// for its next agent: the detached agent loses them before the annotation is removed,
// because without it the record does not show which of the two agents it names.
func (r *Reconciler) ensureBindings(ctx context.Context, cluster *clusterv1.ManagedCluster) error {
	bind := r.bind
	if cluster.Annotations[names.AnnotationLeft] != "" {
		bind = r.bindLive
		if err := bind(ctx, cluster); err != nil && !errors.Is(err, errUndecided) {
			return err
		}
		if err := clusterpatch.DropAnnotation(ctx, r.Client, Owner, cluster, names.AnnotationLeft); err != nil {
			return err
		}
	}
	if err := bind(ctx, cluster); !errors.Is(err, errUndecided) {
		return err
	}
	return nil
}

// bind ensures the bindings of an accepted cluster. Before it writes any it reads
// the grantee from the API server, because the cache may still show an earlier
// cluster of the same name. A cluster that is only being accepted has no bindings to
// compare with.
func (r *Reconciler) bind(ctx context.Context, cluster *clusterv1.ManagedCluster) error {
	if apimeta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1.ManagedClusterConditionHubAccepted) {
		who, err := r.grantee(ctx, r.cached(), cluster)
		if err != nil {
			return err
		}
		bound, err := r.bound(ctx, cluster.Name, who)
		if err != nil {
			return err
		}
		if bound {
			return r.ensureRBAC(ctx, cluster.Name, who)
		}
	}
	return r.bindLive(ctx, cluster)
}

// bindLive is bind with the grantee as the API server has it.
func (r *Reconciler) bindLive(ctx context.Context, cluster *clusterv1.ManagedCluster) error {
	who, err := r.grantee(ctx, r.live(), cluster)
	if err != nil {
		return err
	}
	return r.ensureRBAC(ctx, cluster.Name, who)
}

// deny removes the access of a cluster except to read its own ManagedCluster. It
// compares with the existing objects, never with a condition.
func (r *Reconciler) deny(ctx context.Context, cluster *clusterv1.ManagedCluster) error {
	if err := r.restrict(ctx, cluster); err != nil {
		return r.failed(ctx, cluster, err)
	}
	changed, err := r.condition(ctx, cluster, metav1.ConditionFalse, names.ReasonHubDenied, names.MessageHubDenied)
	if changed {
		r.Recorder.Normal(cluster, "ManagedClusterDenied", "Deny", "The hub no longer accepts the cluster and removed its access")
	}
	return err
}

// restrict removes the access of a denied cluster. An identity that a driver granted
// gets no read access, because the grant itself is revoked.
func (r *Reconciler) restrict(ctx context.Context, cluster *clusterv1.ManagedCluster) error {
	if err := validateName(cluster.Name); errors.Is(err, names.ErrClusterName) {
		return nil // It was never granted access.
	}
	agent, err := r.agent(ctx, r.live(), cluster)
	if err != nil {
		return err
	}
	return r.reduceRBAC(ctx, r.Live, cluster.Name, recorded(cluster.Name, agent))
}
