package components

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag" //nolint:depguard // The components read their flags with it.
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/operator/clustermanager"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/operator/klusterlet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/agent"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controllers"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
)

// image is the image that the operators set for the components.
const image = "operator:v1"

// Hub runs the operator of a hub on which init was run, and its registration controllers.
// setup is a driver of the hub, and drivers are all that there are.
func Hub(t *testing.T, on *controlplane.ControlPlane, drivers driver.Catalog, setup driver.Setup) {
	t.Helper()
	objects, err := clustermanager.CacheOptions()
	if err != nil {
		t.Fatal(err)
	}
	start(t, on, names.OperatorNamespace, names.ClusterManagerOperator, objects, func(_ context.Context, mgr manager.Manager) error {
		return clustermanager.Setup(mgr, clustermanager.Config{
			Namespace: names.OperatorNamespace, Image: image, Version: "1.0.0", Replicas: 1,
			ControlPlane: labels.Everything(), Drivers: drivers, Clock: clock.RealClock{},
		})
	})
	flags := setup.HubFlags()
	parse(t, flags, args(t, on, names.HubNamespace, names.HubRegistrationDeployment(names.ClusterManagerName)))
	granter, _, err := flags.Driver()
	if err != nil {
		t.Fatal(err)
	}
	if objects, err = hub.CacheOptions(); err != nil {
		t.Fatal(err)
	}
	start(t, on, names.HubNamespace, names.HubRegistrationServiceAccount, objects, func(ctx context.Context, mgr manager.Manager) error {
		return hub.Setup(ctx, mgr, hub.Config{
			Drivers: []hub.Driver{{Hub: granter}}, IdentityAnnotations: drivers.Annotations(), Namespace: names.HubNamespace,
			ResourceCleanup: true, CleanupResources: hub.DefaultCleanupResources(), Clock: clock.RealClock{},
		})
	})
}

// Agent runs the operator of a managed cluster on which join was run, or is being run, and
// its registration agent. setup is its driver, and drivers are all that there are.
func Agent(t *testing.T, on *controlplane.ControlPlane, drivers driver.Catalog, setup driver.Setup, cluster string) {
	t.Helper()
	objects, err := klusterlet.CacheOptions()
	if err != nil {
		t.Fatal(err)
	}
	start(t, on, names.OperatorNamespace, names.KlusterletOperator, objects, func(_ context.Context, mgr manager.Manager) error {
		return klusterlet.Setup(mgr, klusterlet.Config{
			Namespace: names.OperatorNamespace, Image: image, Version: "1.0.0", Replicas: 1,
			ControlPlane: labels.Everything(), Drivers: drivers, Clock: clock.RealClock{},
		})
	})
	flags := setup.AgentFlags()
	parse(t, flags, args(t, on, names.AgentNamespace, names.RegistrationAgentDeployment(names.KlusterletName)))
	newDriver, err := flags.Driver()
	if err != nil {
		t.Fatal(err)
	}
	objects = agent.CacheOptions(names.AgentNamespace)
	start(t, on, names.AgentNamespace, names.RegistrationAgentServiceAccount(names.KlusterletName), objects, func(_ context.Context, mgr manager.Manager) error {
		_, err := agent.Setup(mgr, prometheus.NewRegistry(), agent.Config{
			Namespace: names.AgentNamespace, Names: agent.Names{Cluster: cluster, Klusterlet: names.KlusterletName},
			Secrets:   agent.Secrets{Bootstrap: names.BootstrapHubKubeconfigSecret, Hub: names.HubKubeconfigSecret},
			NewDriver: newDriver, HealthPeriod: time.Minute, Clock: clock.RealClock{},
		})
		return err
	})
}

// start runs controllers as a ServiceAccount.
func start(t *testing.T, on *controlplane.ControlPlane, namespace, account string, options cache.Options, setup func(context.Context, manager.Manager) error) {
	t.Helper()
	controllers.Start(t, on.ConfigForAccount(t, namespace, account), manager.Options{Cache: options}, setup)
}

// args awaits the flags that an operator renders for a Deployment.
func args(t *testing.T, on *controlplane.ControlPlane, namespace, name string) []string {
	t.Helper()
	var d appsv1.Deployment
	c := on.Client(t)
	await.Success(t, await.Patience, "the Deployment "+name, func(ctx context.Context) error {
		return c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &d)
	})
	return d.Spec.Template.Spec.Containers[0].Args
}

// parse reads the flags of a driver as its component does, which has others as well.
func parse(t *testing.T, flags interface{ AddTo(*pflag.FlagSet) }, args []string) {
	t.Helper()
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	set.ParseErrorsAllowlist.UnknownFlags = true
	flags.AddTo(set)
	if err := set.Parse(args); err != nil {
		t.Fatal(err)
	}
}
