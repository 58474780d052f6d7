package hub

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apply"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/bootstrap"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/lookup"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// ClustersRemainError says that a hub still has clusters.
type ClustersRemainError struct{ Clusters []string }

// Error implements error.
func (e *ClustersRemainError) Error() string {
	return fmt.Sprintf("the hub still has %d clusters: %v", len(e.Clusters), e.Clusters[:min(len(e.Clusters), 5)])
}

// Installed describes an installed hub.
type Installed struct {
	// Manager is nil when only other objects remain.
	Manager  *operatorv1.ClusterManager
	Clusters []string
}

// Find returns what is installed of a hub; ErrNoHub when nothing is.
func (r Runner) Find(ctx context.Context) (Installed, error) {
	var hub Installed
	var err error
	if hub.Manager, err = lookup.ClusterManager(ctx, r.Client); err != nil {
		return hub, err
	}
	if hub.Manager == nil {
		operator := install.DeploymentReady(names.OperatorNamespace, names.ClusterManagerOperator).Object
		if err := r.Client.Get(ctx, client.ObjectKeyFromObject(operator), operator); err != nil {
			if lookup.Gone(err) {
				return hub, ErrNoHub
			}
			return hub, err
		}
	}
	var list clusterv1.ManagedClusterList
	if err := r.Client.List(ctx, &list); err != nil && !lookup.Gone(err) {
		return hub, fmt.Errorf("clusters: %w", err)
	}
	for i := range list.Items {
		hub.Clusters = append(hub.Clusters, list.Items[i].Name)
	}
	return hub, nil
}

// ErrNoHub says that no hub is installed.
var ErrNoHub = errors.New("hub has not been initialized")

// Clean removes the hub: the ClusterManager first, so that its operator removes the
// components, then what init installed. A hub with clusters is not removed unless
// l.Force is set.
func (r Runner) Clean(ctx context.Context, hub Installed, l install.Removal) error {
	if len(hub.Clusters) > 0 && !l.Force {
		return &ClustersRemainError{Clusters: hub.Clusters}
	}
	if hub.Manager != nil {
		err := r.Step(ctx, "Removing the hub components", func(ctx context.Context, say install.Say) error {
			manager := &operatorv1.ClusterManager{ObjectMeta: metav1.ObjectMeta{Name: hub.Manager.Name}}
			if _, err := r.Applier().Delete(ctx, manager); err != nil || r.DryRun {
				return err
			}
			return r.Waiter(say).Wait(ctx, apply.Target{Object: manager, Check: goneOrWhy})
		})
		if err != nil {
			return err
		}
	}
	if !l.Purge {
		return nil
	}
	objs, err := r.hubObjects(ctx)
	if err != nil {
		return err
	}
	return r.Step(ctx, "Removing the hub operator", func(ctx context.Context, say install.Say) error {
		_, err := r.Applier().DeleteAndWait(ctx, r.Waiter(say), objs...)
		return err
	})
}

// CleanPlan lists what Clean would remove, for a dry run.
func (r Runner) CleanPlan(ctx context.Context, hub Installed, l install.Removal) ([]string, error) {
	if len(hub.Clusters) > 0 && !l.Force {
		return nil, &ClustersRemainError{Clusters: hub.Clusters}
	}
	var plan []string
	if hub.Manager != nil {
		plan = append(plan, "clustermanager.operator.open-cluster-management.io/"+hub.Manager.Name)
	}
	if !l.Purge {
		return plan, nil
	}
	objs, err := r.hubObjects(ctx)
	if err != nil {
		return nil, err
	}
	// Objects that init applies with other flags may not exist.
	found, err := r.Existing(ctx, objs)
	for _, obj := range found {
		if line := r.Describe(obj); !slices.Contains(plan, line) {
			plan = append(plan, line)
		}
	}
	return plan, err
}

// hubObjects returns what init installs in addition to the ClusterManager and nothing
// else uses.
func (r Runner) hubObjects(ctx context.Context) ([]client.Object, error) {
	h := Values{Workload: install.Workload{KeepNamespace: true}, Cleanup: &Cleanup{After: time.Hour, Schedule: "@hourly"}}
	var objs []client.Object
	for _, token := range []bool{false, true} {
		h.BootstrapToken = token
		part, err := h.objects(retained{}, bootstrap.ClusterInfo{})
		if err != nil {
			return nil, err
		}
		objs = append(objs, part...)
	}
	objs = install.Without(objs, "ClusterManager")
	public, err := r.ownPublicInfo(ctx)
	if err != nil {
		return nil, err
	}
	objs = append(objs, public...)
	shared, err := r.Shared(ctx, names.ClusterManagerOperator)
	if err != nil {
		return nil, err
	}
	if shared {
		return slices.DeleteFunc(objs, func(o client.Object) bool { return o.GetName() == names.ImagePullSecret }), nil
	}
	return append(objs, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: names.OperatorNamespace}}), nil
}

// ownPublicInfo returns the published cluster-info if it is ours.
func (r Runner) ownPublicInfo(ctx context.Context) ([]client.Object, error) {
	live, err := r.liveInfo(ctx)
	if err != nil || live == nil || !install.Owned(live) {
		return nil, err
	}
	return publicInfo(bootstrap.ClusterInfo{Server: "https://gone"})
}
