package hub

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/acceptance"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/clusterrole"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/csrapproval"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/duplicate"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/featurelabel"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/gc"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/internal/event"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/internal/leftover"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/lease"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/taint"
)

// Config is what can be chosen about the hub's side of registration.
type Config struct {
	// Drivers are the enabled registration drivers.
	Drivers []driver.Hub
	// AutoApprove is the feature gate ManagedClusterAutoApproval.
	AutoApprove bool
	// AutoApprovedUsers are those whose first CSRs are approved while
	// AutoApprove is on.
	AutoApprovedUsers []string
	// ResourceCleanup is the feature gate of that name.
	ResourceCleanup bool
	// CleanupResources are what is deleted from the namespace of a cluster
	// that goes, in this order.
	CleanupResources []schema.GroupVersionResource
	// Labels are put on what is made for clusters.
	Labels map[string]string
	// Clock is the hub's.
	Clock clock.PassiveClock
}

// DefaultCleanupResources is the order in which the namespace of a cluster is
// emptied: add-ons first, because they remove their works themselves.
func DefaultCleanupResources() []schema.GroupVersionResource {
	return []schema.GroupVersionResource{leftover.AddOns(), leftover.ManifestWorks()}
}

// Setup adds the controllers to mgr, whose cache must have been made with
// CacheOptions.
func Setup(ctx context.Context, mgr ctrl.Manager, config Config) error {
	c := mgr.GetClient()
	recorder := func(controller string) event.Recorder {
		return event.Recorder{Events: mgr.GetEventRecorder("ocm-" + controller)}
	}
	controllers := []interface{ SetupWithManager(ctrl.Manager) error }{
		&clusterrole.Reconciler{Client: c, Labels: config.Labels},
		&acceptance.Reconciler{
			Client: c, Live: mgr.GetAPIReader(), Drivers: config.Drivers,
			AutoApprove: config.AutoApprove, CollectGarbage: config.ResourceCleanup,
			Labels: config.Labels, Clock: config.Clock, Recorder: recorder("acceptance"),
		},
		&lease.Reconciler{Client: c, Clock: config.Clock, Recorder: recorder("lease")},
		&taint.Reconciler{Client: c, Clock: config.Clock},
		&featurelabel.Reconciler{Client: c, Clock: config.Clock},
		&gc.Reconciler{
			Client: c, Live: mgr.GetAPIReader(), Enabled: config.ResourceCleanup,
			Resources: config.CleanupResources, Clock: config.Clock, Recorder: recorder("gc"),
		},
	}
	for _, controller := range controllers {
		if err := controller.SetupWithManager(mgr); err != nil {
			return fmt.Errorf("hub registration: %w", err)
		}
	}
	approval := &csrapproval.Reconciler{
		Client: c, AutoApprove: config.AutoApprove, Users: config.AutoApprovedUsers,
		Events: mgr.GetEventRecorder("ocm-csrapproval"),
	}
	if err := approval.SetupWithManager(ctx, mgr); err != nil {
		return fmt.Errorf("hub registration: %w", err)
	}
	duplicates := &duplicate.Reconciler{Client: c, Clock: config.Clock}
	if err := duplicates.SetupWithManager(ctx, mgr); err != nil {
		return fmt.Errorf("hub registration: %w", err)
	}
	return nil
}
