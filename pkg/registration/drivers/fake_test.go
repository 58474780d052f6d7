package drivers_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag" //nolint:depguard // The components read their flags with it.
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/kubeconfig"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/operator/clustermanager"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/operator/klusterlet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/agent"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/drivertest"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/drivers"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controllers"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(klog.Background())
	m.Run()
}

// road is a hub and a cluster whose operators and components run in this process, with the
// permissions that init and join gave them and the flags that the operators rendered.
type road struct {
	hub, managed *controlplane.ControlPlane
	catalog      driver.Catalog
	setup        drivertest.FakeSetup
}

// run runs a command as an administrator of a cluster.
func (r *road) run(t *testing.T, on *controlplane.ControlPlane, args ...string) (code int, printed string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, on.Kubeconfig(t, "admin"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	env := cmd.Env{
		IOStreams: cmd.Streams{In: &bytes.Buffer{}, Out: &out, ErrOut: &out}, Name: "kubectl ocm",
		Clock: clock.RealClock{}, Getenv: func(string) string { return "" }, Drivers: r.catalog,
	}
	return int(cmd.Execute(t.Context(), env, append(args, "--kubeconfig", file))), out.String()
}

// must runs a command that succeeds and prints all words.
func (r *road) must(t *testing.T, on *controlplane.ControlPlane, words []string, args ...string) string {
	t.Helper()
	code, printed := r.run(t, on, args...)
	if code != 0 {
		t.Fatalf("%v ended with %d:\n%s", args, code, printed)
	}
	for _, word := range words {
		if !strings.Contains(printed, word) {
			t.Errorf("%v did not print %q:\n%s", args, word, printed)
		}
	}
	return printed
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

// startHub runs the operator of the hub, and the controller with the flags that the
// operator renders.
func (r *road) startHub(t *testing.T) {
	t.Helper()
	objects, err := clustermanager.CacheOptions()
	if err != nil {
		t.Fatal(err)
	}
	start(t, r.hub, names.OperatorNamespace, names.ClusterManagerOperator, objects, func(_ context.Context, mgr manager.Manager) error {
		return clustermanager.Setup(mgr, clustermanager.Config{
			Namespace: names.OperatorNamespace, Image: "operator:v1", Version: "1.0.0", Replicas: 1,
			ControlPlane: labels.Everything(), Drivers: r.catalog, Clock: clock.RealClock{},
		})
	})
	rendered := args(t, r.hub, names.HubNamespace, names.HubRegistrationDeployment(names.ClusterManagerName))
	if want := "--enabled-registration-drivers=" + string(drivertest.SetupType); !slices.Contains(rendered, want) {
		t.Errorf("the operator rendered %v, without %s", rendered, want)
	}
	flags := r.setup.HubFlags()
	parse(t, flags, rendered)
	granter, _, err := flags.Driver()
	if err != nil {
		t.Fatal(err)
	}
	if objects, err = hub.CacheOptions(); err != nil {
		t.Fatal(err)
	}
	start(t, r.hub, names.HubNamespace, names.HubRegistrationServiceAccount, objects, func(ctx context.Context, mgr manager.Manager) error {
		return hub.Setup(ctx, mgr, hub.Config{
			Drivers: []hub.Driver{{Hub: granter}}, IdentityAnnotations: r.catalog.Annotations(), Namespace: names.HubNamespace,
			ResourceCleanup: true, CleanupResources: hub.DefaultCleanupResources(), Clock: clock.RealClock{},
		})
	})
}

// startAgent runs the operator of the managed cluster, and the agent with the flags that
// the operator renders.
func (r *road) startAgent(t *testing.T) {
	t.Helper()
	objects, err := klusterlet.CacheOptions()
	if err != nil {
		t.Fatal(err)
	}
	start(t, r.managed, names.OperatorNamespace, names.KlusterletOperator, objects, func(_ context.Context, mgr manager.Manager) error {
		return klusterlet.Setup(mgr, klusterlet.Config{
			Namespace: names.OperatorNamespace, Image: "operator:v1", Version: "1.0.0", Replicas: 1,
			ControlPlane: labels.Everything(), Drivers: r.catalog, Clock: clock.RealClock{},
		})
	})
	rendered := args(t, r.managed, names.AgentNamespace, names.RegistrationAgentDeployment(names.KlusterletName))
	if want := "--registration-auth=" + string(drivertest.SetupType); !slices.Contains(rendered, want) {
		t.Errorf("the operator rendered %v, without %s", rendered, want)
	}
	flags := r.setup.AgentFlags()
	parse(t, flags, rendered)
	newDriver, err := flags.Driver()
	if err != nil {
		t.Fatal(err)
	}
	start(t, r.managed, names.AgentNamespace, names.RegistrationAgentServiceAccount(names.KlusterletName), agent.CacheOptions(names.AgentNamespace), func(_ context.Context, mgr manager.Manager) error {
		_, err := agent.Setup(mgr, prometheus.NewRegistry(), agent.Config{
			Namespace: names.AgentNamespace, Names: agent.Names{Cluster: "c1", Klusterlet: names.KlusterletName},
			Secrets:   agent.Secrets{Bootstrap: names.BootstrapHubKubeconfigSecret, Hub: names.HubKubeconfigSecret},
			NewDriver: newDriver, HealthPeriod: time.Minute, Clock: clock.RealClock{},
		})
		return err
	})
}

// TestFakeDriver takes a driver that no package but its own and this test names through
// init, join, accept, check and unjoin.
func TestFakeDriver(t *testing.T) {
	t.Parallel()
	r := &road{hub: controlplane.Lease(t), managed: controlplane.Lease(t)}
	outside := drivertest.NewOutside()
	shown, err := kubeconfig.ParseHub(r.hub.KubeconfigFor(t, "fake-user", names.MappedClusterGroup("c1")))
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := tls.X509KeyPair(shown.User.ClientCertificateData, shown.User.ClientKeyData)
	if err != nil {
		t.Fatal(err)
	}
	r.setup = drivertest.FakeSetup{Outside: outside, Certificate: certificate}
	r.catalog = append(drivers.All(), r.setup)
	admin := r.hub.Client(t)

	if code, printed := r.run(t, r.hub, "init", "--registration-auth=fake", "--no-token"); code == 0 || !strings.Contains(printed, "the fake driver needs the name of the hub") {
		t.Errorf("init without the name of the hub ended with %d:\n%s", code, printed)
	}
	r.must(t, r.hub, nil, "init", "--registration-auth=fake", "--fake-hub=h1", "--no-token")
	r.startHub(t)
	await.Success(t, await.Patience, "the hub serves clusters", func(ctx context.Context) error {
		return admin.List(ctx, &clusterv1.ManagedClusterList{})
	})
	printed := strings.Fields(r.must(t, r.hub, nil, "get", "token", "-o", "token"))
	token := printed[len(printed)-1] // A warning about the address is before it.
	authority := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(authority, r.hub.Config(t).CAData, 0o600); err != nil {
		t.Fatal(err)
	}
	r.must(t, r.managed, []string{"accept --clusters c1"}, "join", "--cluster-name=c1", "--registration-auth=fake", "--fake-hub=h1", "--fake-id=one",
		"--hub-apiserver="+r.hub.Config(t).Host, "--hub-token="+token, "--ca-file="+authority)
	r.startAgent(t)
	cluster := &clusterv1.ManagedCluster{}
	await.Success(t, await.Patience, "the cluster registers", func(ctx context.Context) error {
		return admin.Get(ctx, client.ObjectKey{Name: "c1"}, cluster)
	})
	if cluster.Annotations[drivertest.FakeAnnotation] != "fake:one" {
		t.Errorf("the cluster announces %v", cluster.Annotations)
	}
	if _, printed := r.run(t, r.hub, "check", "cluster", "c1"); !strings.Contains(printed, "its fake identity is announced") || !strings.Contains(printed, "hubAcceptsClient is false") {
		t.Errorf("check of a cluster that is not accepted:\n%s", printed)
	}

	r.must(t, r.hub, []string{"c1: trusted role/one on h1", "fake identity granted by the hub"}, "accept", "c1", "--wait", "--timeout=90s")
	await.Success(t, await.Patience, "the agent joins with its fake identity", func(context.Context) error {
		if code, printed := r.run(t, r.hub, "get", "clusters", "c1", "-o", "json"); code != 0 || !strings.Contains(printed, `"joined": true`) || !strings.Contains(printed, `"auth": "grpc"`) {
			return fmt.Errorf("%d: %s", code, printed)
		}
		return nil
	})
	if _, printed := r.run(t, r.hub, "check", "cluster", "c1"); !strings.Contains(printed, "role/one") || !strings.Contains(printed, "it uses its fake identity") {
		t.Errorf("check of a cluster that has joined:\n%s", printed)
	}
	if _, printed := r.run(t, r.hub, "check", "hub"); !strings.Contains(printed, "fake clusters can register") || !strings.Contains(printed, "1 granted, 0 waiting, 0 failing") {
		t.Errorf("check of the hub:\n%s", printed)
	}
	if code, printed := r.run(t, r.hub, "init", "--registration-auth=fake", "--fake-hub=h2"); code == 0 || !strings.Contains(printed, "clusters have fake entries by the driver grpc of the hub h1: c1") {
		t.Errorf("init with another name of the hub ended with %d:\n%s", code, printed)
	}

	// The two sides apart: the kubeconfig runs a program that a command would not run.
	r.must(t, r.managed, nil, "unjoin", "c1", "--side=managed", "--yes", "--wait", "--timeout=90s")
	r.must(t, r.hub, nil, "unjoin", "c1", "--side=hub", "--yes", "--wait", "--timeout=90s")
	if left := outside.Objects(); len(left) > 0 {
		t.Errorf("the fake service still has %v", left)
	}
}
