//go:build linux

package join_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apply"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/bootstrap"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/finding"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/scheme"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/agent"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/hub"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/join"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/drivers"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/components"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installer"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(klog.Background())
	m.Run()
}

// observer records what a join tells its user.
type observer struct{ events []string }

func (o *observer) Warn(format string, _ ...any) { o.events = append(o.events, "warning: "+format) }
func (o *observer) Review(agent.Values) error    { o.events = append(o.events, "review"); return nil }
func (o *observer) Rotating()                    { o.events = append(o.events, "rotating") }
func (o *observer) AwaitingAcceptance(string, []string) {
	o.events = append(o.events, "awaiting acceptance")
}

func (o *observer) Applied(context.Context, apply.ChangeSet) error {
	o.events = append(o.events, "applied")
	return nil
}

// newHub returns a hub that init has installed, and whose components run.
func newHub(t *testing.T) *controlplane.ControlPlane {
	t.Helper()
	cp := controlplane.Lease(t)
	wanted := hub.Values{Workload: install.Workload{Image: installer.Image}, Catalog: drivers.All()}
	info := bootstrap.ClusterInfo{Server: cp.Config(t).Host, CA: cp.Config(t).CAData}
	if _, err := (hub.Runner{Runner: installer.New(t, cp)}).Init(t.Context(), wanted, info); err != nil {
		t.Fatal(err)
	}
	components.Hub(t, cp, drivers.All(), csr(t))
	await.Success(t, await.Patience, "the hub serves clusters", func(ctx context.Context) error {
		return cp.Client(t).List(ctx, &clusterv1.ManagedClusterList{})
	})
	return cp
}

func csr(t *testing.T) driver.Setup {
	t.Helper()
	setup, err := drivers.All().Parse(string(driver.CSR))
	if err != nil {
		t.Fatal(err)
	}
	return setup
}

// newJoiner returns a Joiner of a cluster to a hub, with the connection of the hub's
// administrator.
func newJoiner(t *testing.T, managed, onHub *controlplane.ControlPlane) (*join.Joiner, *observer) {
	t.Helper()
	runner := installer.New(t, managed)
	runner.Drivers = drivers.All()
	connect := func(config *rest.Config) (client.Client, error) {
		return client.New(config, client.Options{Scheme: scheme.New()})
	}
	seen := &observer{}
	return &join.Joiner{
		Runner: agent.Runner{Runner: runner}, Connect: connect, Program: "test", Observer: seen,
		Admin: &join.Admin{Client: onHub.Client(t), Config: onHub.Config(t), Name: "hub", Init: "init"},
	}, seen
}

// plan is a join of a cluster without a work agent, whose pods nobody runs here.
func plan(cluster string) join.Plan {
	return join.Plan{Agent: agent.Values{
		ClusterName: cluster, Workload: install.Workload{Image: installer.Image}, Work: agent.Work{Enabled: new(false)},
	}}
}

// TestJoinAndAccept joins a cluster, accepts it with the connection of the hub's
// administrator, and waits until the hub shows it as available: from Go, with our operators,
// the hub's controllers and the agent. The token is worth nothing afterwards, and a second
// run changes nothing.
func TestJoinAndAccept(t *testing.T) {
	t.Parallel()
	onHub, managed := newHub(t), controlplane.Lease(t)
	installer.BeKubelet(t, managed.Client(t))
	joiner, seen := newJoiner(t, managed, onHub)
	type end struct {
		result join.Result
		err    error
	}
	done := make(chan end, 1)
	go func() {
		result, err := joiner.Run(t.Context(), plan("c1"))
		done <- end{result, err}
	}()
	awaitOperator(t, managed)
	components.Agent(t, managed, drivers.All(), csr(t), "c1")
	got := <-done
	if got.err != nil {
		t.Fatal(got.err)
	}
	if got.result.Cluster != "c1" || got.result.Hub != onHub.Config(t).Host || got.result.Key == "" || !got.result.Changes.Changed() {
		t.Errorf("the result is %+v", got.result)
	}
	// The hub's address is of this machine only.
	if want := []string{"warning: the agent may not reach %s: %s", "review", "applied"}; !slices.Equal(seen.events, want) {
		t.Errorf("the observer learned %q, want %q", seen.events, want)
	}
	var cluster clusterv1.ManagedCluster
	if err := onHub.Client(t).Get(t.Context(), client.ObjectKey{Name: "c1"}, &cluster); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{clusterv1.ManagedClusterConditionHubAccepted, clusterv1.ManagedClusterConditionJoined, clusterv1.ManagedClusterConditionAvailable} {
		if !apimeta.IsStatusConditionTrue(cluster.Status.Conditions, kind) {
			t.Errorf("%s is not true: %+v", kind, cluster.Status.Conditions)
		}
	}
	tokens, err := bootstrap.Tokens{Client: onHub.Client(t), Clock: joiner.Clock}.List(t.Context())
	if err != nil || len(tokens) > 0 {
		t.Errorf("tokens are left: %+v, %v", tokens, err)
	}
	again, err := joiner.Run(t.Context(), plan("c1"))
	if err != nil || slices.ContainsFunc(again.Changes, func(c apply.Change) bool {
		return c.Action != apply.Unchanged && c.Object.Kind.Kind != "Secret" // The token is another one.
	}) {
		t.Errorf("a second run: %v, changed %v", err, again.Changes)
	}
}

// awaitOperator waits until join has installed the operator.
func awaitOperator(t *testing.T, managed *controlplane.ControlPlane) {
	t.Helper()
	c := managed.Client(t)
	await.Success(t, await.Patience, "the operator", func(ctx context.Context) error {
		key := client.ObjectKey{Namespace: names.OperatorNamespace, Name: names.KlusterletOperator}
		return errors.Join(c.Get(ctx, key, &appsv1.Deployment{}), c.Get(ctx, client.ObjectKey{Name: names.KlusterletName}, &operatorv1.Klusterlet{}))
	})
}

// TestNothingWritten: a join that cannot succeed writes nothing to either side, and leaves no
// token.
func TestNothingWritten(t *testing.T) {
	t.Parallel()
	onHub, managed := newHub(t), controlplane.Lease(t)
	kindOf := func(err error) finding.Kind {
		if refused, ok := errors.AsType[*finding.Error](err); ok {
			return refused.Kind
		}
		return ""
	}
	for name, tc := range map[string]struct {
		change func(*join.Joiner, *join.Plan)
		refuse func(error) bool
	}{
		"there is no agent to refresh": {
			change: func(_ *join.Joiner, p *join.Plan) { p.Change = join.Refresh },
			refuse: func(err error) bool { return kindOf(err) == finding.NotFound },
		},
		"the hub is none": {
			change: func(j *join.Joiner, _ *join.Plan) {
				j.Admin = &join.Admin{Client: managed.Client(t), Config: managed.Config(t), Name: "other", Init: "init"}
			},
			refuse: func(err error) bool { return kindOf(err) == finding.Blocked },
		},
		"the hub has another CA": {
			change: func(j *join.Joiner, p *join.Plan) {
				p.Endpoint = bootstrap.Endpoint{Server: onHub.Config(t).Host, Pins: []bootstrap.CAHash{bootstrap.CAHash("sha256:" + strings.Repeat("0", 64))}}
			},
			refuse: func(err error) bool {
				_, ok := errors.AsType[*bootstrap.Error](err)
				return ok
			},
		},
		"the observer stops it": {
			change: func(j *join.Joiner, _ *join.Plan) { j.Observer = refusing{&observer{}} },
			refuse: func(err error) bool { return errors.Is(err, errRefused) },
		},
	} {
		joiner, _ := newJoiner(t, managed, onHub)
		p := plan("c1")
		tc.change(joiner, &p)
		before := installer.Contents(t, managed.Client(t))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		result, err := joiner.Run(ctx, p)
		cancel()
		if err == nil || !tc.refuse(err) || len(result.Changes) > 0 {
			t.Errorf("%s: %v, changed %v", name, err, result.Changes)
		}
		if after := installer.Contents(t, managed.Client(t)); len(after) != len(before) {
			t.Errorf("%s: the cluster has %d objects instead of %d", name, len(after), len(before))
		}
		tokens, err := bootstrap.Tokens{Client: onHub.Client(t), Clock: joiner.Clock}.List(t.Context())
		if err != nil || len(tokens) > 0 {
			t.Errorf("%s: tokens are left: %+v, %v", name, tokens, err)
		}
	}
}

// refusing is an observer that wants no join.
type refusing struct{ *observer }

var errRefused = errors.New("refused")

func (refusing) Review(agent.Values) error { return errRefused }
