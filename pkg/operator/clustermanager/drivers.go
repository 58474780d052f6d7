package clustermanager

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/operator/internal/operand"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// driverRuntime returns what the registration controller needs to run with the drivers
// that a ClusterManager enables.
func (r *Reconciler) driverRuntime(cm *operatorv1.ClusterManager) driver.Runtime {
	enabled := r.config.Drivers.Of(cm)
	if len(enabled) == 0 {
		return driver.Runtime{}
	}
	var kinds []string
	var all driver.Runtime
	for _, e := range enabled {
		kinds = append(kinds, string(e.Type()))
		needed := e.HubRuntime(e.Settings)
		all.Args = append(all.Args, needed.Args...)
		all.System = append(all.System, needed.System...)
		if all.Account == nil {
			all.Account = needed.Account
			continue
		}
		maps.Copy(all.Account, needed.Account)
	}
	all.Args = append([]string{"--enabled-registration-drivers=" + strings.Join(slices.Compact(kinds), ",")}, all.Args...)
	return all
}

// rejectedDriver returns the rejection of a driver or of its settings, with which the
// registration controller would not start, or nil.
func (r *Reconciler) rejectedDriver(cm *operatorv1.ClusterManager) *metav1.Condition {
	for _, entry := range cm.Spec.RegistrationConfiguration.RegistrationDrivers {
		if _, err := r.config.Drivers.Parse(entry.AuthType); err != nil {
			return operand.Rejection(ReasonDriverNotSupported, "spec.registrationConfiguration.registrationDrivers: %v", err)
		}
	}
	for _, e := range r.config.Drivers.Of(cm) {
		if err := e.ValidateHub(e.Settings); err != nil {
			return operand.Rejection(ReasonSettingInvalid, "%s", sentence(err))
		}
	}
	return nil
}

// retainSystem retains the permissions in kube-system of a controller that retains its
// settings, which depend on them. Only the controller's own Role counts: any user who may
// write Roles there can label another one.
func (r *Reconciler) retainSystem(ctx context.Context, s *scope) error {
	var role rbacv1.Role
	key := client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: names.HubRegistrationRole(s.cm.Name)}
	if err := r.Uncached.Get(ctx, key, &role); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("get the Role %s: %w", key, err)
	}
	s.Values.System = role.Rules
	return nil
}

// droppedDriver returns the rejection of a ClusterManager that removes a driver, or
// changes who the hub is to it, while clusters have grants by it; else nil. Those clusters
// would lose the hub, and no controller would revoke their grants.
func (r *Reconciler) droppedDriver(ctx context.Context, s *scope) (*metav1.Condition, error) {
	// The cache may be stale, and has no grants.
	flags, running, err := operand.RunningFlags(ctx, r.Uncached, registrationDeployment(s))
	if err != nil || !running {
		return nil, err
	}
	for _, setup := range r.config.Drivers {
		grants := setup.Grants()
		hub, had := valueOf(flags, grants.HubFlag)
		if now, has := valueOf(s.Values.RegistrationArgs, grants.HubFlag); !had || has && now == hub {
			continue
		}
		clusters, err := driver.GrantedClusters(ctx, r.Uncached, s.Values.Namespace, setup.Type())
		if err != nil {
			return nil, err
		}
		if len(clusters) > 0 {
			return operand.Rejection(ReasonDriverInUse, "Clusters have %s by the driver %s of the hub %s: %s. "+
				"They would lose the hub, and their %s would stay: join them again with another driver, or deny or delete them, before you change the driver",
				grants.Kind, setup.Type(), hub, listed(clusters), grants.Kind), nil
		}
	}
	return nil, nil
}

// valueOf returns the value of a flag among arguments. No argument is a flag without a
// name.
func valueOf(args []string, flag string) (value string, found bool) {
	for _, arg := range args {
		if value, found = strings.CutPrefix(arg, "--"+flag+"="); found && flag != "" {
			return value, true
		}
	}
	return "", false
}

// listedClusters is the number of clusters that a condition names.
const listedClusters = 10

// listed returns the names of the first clusters and the number of the others.
func listed(clusters []string) string {
	if more := len(clusters) - listedClusters; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(clusters[:listedClusters], ", "), more)
	}
	return strings.Join(clusters, ", ")
}
