package hub

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/acceptance"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/duplicate"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/expiry"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/featurelabel"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/gc"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/grant"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/internal/event"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/internal/orphan"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/internal/record"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/internal/sharedrole"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/lease"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/taint"
)

// Config configures the registration controllers of the hub.
type Config struct {
	// Drivers are the enabled registration drivers.
	Drivers []Driver
	// IdentityAnnotations are the annotations that identify ManagedClusters to
	// registration drivers, including drivers that are not enabled.
	IdentityAnnotations []string
	// Namespace is the namespace of the hub's components and of the records of grants.
	Namespace string
	// AutoApprove is the feature gate ManagedClusterAutoApproval.
	AutoApprove bool
	// ResourceCleanup is the feature gate of that name.
	ResourceCleanup bool
	// CleanupResources are deleted, in this order, from the namespace of a cluster
	// that is detached.
	CleanupResources []schema.GroupVersionResource
	// Labels are put on the objects that the hub creates for clusters.
	Labels map[string]string
	// Clock is the hub's.
	Clock clock.PassiveClock
}

// Driver is a registration driver that is enabled.
type Driver struct {
	driver.Hub

	// Setup adds the controllers that only this driver needs; nil if there are none.
	Setup func(context.Context, ctrl.Manager) error
}

// DefaultCleanupResources is the default deletion order: add-ons first, because they
// remove their ManifestWorks themselves.
func DefaultCleanupResources() []schema.GroupVersionResource {
	return []schema.GroupVersionResource{orphan.AddOns(), orphan.ManifestWorks()}
}

// Setup adds the controllers to mgr, whose cache must have CacheOptions.
func Setup(ctx context.Context, mgr ctrl.Manager, config Config) error {
	if err := record.Index(ctx, mgr.GetFieldIndexer()); err != nil {
		return fmt.Errorf("hub registration: %w", err)
	}
	c := mgr.GetClient()
	drivers := make([]driver.Hub, len(config.Drivers))
	for i, d := range config.Drivers {
		drivers[i] = d.Hub
	}
	recorder := func(controller string) event.Recorder {
		return event.Recorder{Events: mgr.GetEventRecorder("ocm-" + controller)}
	}
	controllers := []interface{ SetupWithManager(ctrl.Manager) error }{
		&sharedrole.Reconciler{Client: c, Labels: config.Labels},
		&acceptance.Reconciler{
			Client: c, Live: mgr.GetAPIReader(), Drivers: drivers, IdentityAnnotations: config.IdentityAnnotations,
			AutoApprove: config.AutoApprove, CollectGarbage: config.ResourceCleanup,
			Labels: config.Labels, Clock: config.Clock, Recorder: recorder("acceptance"),
		},
		&lease.Reconciler{Client: c, Clock: config.Clock, Recorder: recorder("lease")},
		&expiry.Reconciler{Client: c, Clock: config.Clock, IdentityAnnotations: config.IdentityAnnotations, Recorder: recorder("expiry")},
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
	grants := &grant.Reconciler{
		Client: c, Live: mgr.GetAPIReader(), Drivers: drivers, IdentityAnnotations: config.IdentityAnnotations,
		Namespace: config.Namespace, Clock: config.Clock, Recorder: recorder("grant"),
	}
	setups := []func(context.Context, ctrl.Manager) error{
		(&duplicate.Reconciler{Client: c, Clock: config.Clock}).SetupWithManager, grants.SetupWithManager,
	}
	for _, d := range config.Drivers {
		setups = append(setups, d.Setup)
	}
	for _, setup := range setups {
		if setup == nil {
			continue
		}
		if err := setup(ctx, mgr); err != nil {
			return fmt.Errorf("hub registration: %w", err)
		}
	}
	return nil
}
