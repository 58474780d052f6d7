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

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/kubeconfig"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/drivertest"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/drivers"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/components"
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

// rendered expects a flag among those that an operator rendered for a Deployment.
func rendered(t *testing.T, on *controlplane.ControlPlane, namespace, name, flag string) {
	t.Helper()
	var d appsv1.Deployment
	if err := on.Client(t).Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &d); err != nil {
		t.Fatal(err)
	}
	if args := d.Spec.Template.Spec.Containers[0].Args; !slices.Contains(args, flag) {
		t.Errorf("the operator rendered %v, without %s", args, flag)
	}
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
	components.Hub(t, r.hub, r.catalog, r.setup)
	rendered(t, r.hub, names.HubNamespace, names.HubRegistrationDeployment(names.ClusterManagerName), "--enabled-registration-drivers="+string(drivertest.SetupType))
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
	components.Agent(t, r.managed, r.catalog, r.setup, "c1")
	rendered(t, r.managed, names.AgentNamespace, names.RegistrationAgentDeployment(names.KlusterletName), "--registration-auth="+string(drivertest.SetupType))
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
