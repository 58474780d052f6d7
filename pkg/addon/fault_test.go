package addon_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/blindfold"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/interrupt"
)

// killed runs an add-on manager that is killed after its n-th write about a
// cluster, and returns once it is gone. It reports false if it was done before.
func (e *env) killed(t *testing.T, cluster string, n int, done func(context.Context) (bool, error)) bool {
	t.Helper()
	writes := interrupt.After(n, cluster, inNamespace)
	end := e.run(t, writes.Wrap)
	defer func() { _ = end() }() // It may want to try its last event again.
	return writes.AwaitCut(t, patience, done)
}

func never(context.Context) (bool, error) { return false, nil }

// TestIdentityResumes kills the add-on manager after each of the writes of an
// identity: the ServiceAccount, the Role, the RoleBinding and the condition.
func TestIdentityResumes(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	const most = 4
	for n := 1; n <= most; n++ {
		name := fmt.Sprintf("killed%d", n)
		e.cluster(t, name)
		e.tokenAddOn(t, name, "a1")
		e.killed(t, name, n, never)
		// Before the condition is told, the agent waits.
		if n < most && e.isReady(t, name) {
			t.Errorf("killed after write %d: the identity is called ready", n)
		}
		rest := newWrites()
		stop := e.start(t, rest.Wrap)
		e.awaitReady(t, name, "a1", name+"-a1-agent")
		stop()
		if diff := cmp.Diff(byOwn, e.infrastructure(t.Context(), t, name, "a1")); diff != "" {
			t.Errorf("killed after write %d (-want +got):\n%s", n, diff)
		}
		if total := n + len(rest.About(name)); total > most+1 {
			t.Errorf("killed after write %d: then\n%s", n, strings.Join(rest.About(name), "\n"))
		}
	}
	// One that starts with everything done writes nothing about it.
	idle := newWrites()
	e.start(t, idle.Wrap)
	e.cluster(t, "last")
	e.tokenAddOn(t, "last", "a1")
	e.awaitReady(t, "last", "a1", "last-a1-agent")
	for n := 1; n <= most; n++ {
		if got := idle.About(fmt.Sprintf("killed%d", n)); len(got) > 0 {
			t.Errorf("without news it wrote:\n%s", strings.Join(got, "\n"))
		}
	}
}

func (e *env) isReady(t *testing.T, cluster string) bool {
	t.Helper()
	found := addOn(cluster, "a1")
	e.get(t.Context(), t, found)
	for _, condition := range found.Status.Conditions {
		if condition.Type == names.ConditionTokenInfrastructureReady && condition.Status == metav1.ConditionTrue {
			return true
		}
	}
	return false
}

// TestRemovalResumes takes identities away, by each way there is, and kills the
// add-on manager after each of its writes.
func TestRemovalResumes(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	stop := e.start(t, nil)
	const most = 6 // More writes than any takes.
	ways := map[string]func(cluster string){
		"driver":    func(cluster string) { e.certify(t, cluster, "a1") },
		"deletion":  func(cluster string) { e.delete(t, addOn(cluster, "a1")) },
		"denial":    func(cluster string) { e.merge(t, managedCluster(cluster), `{"spec":{"hubAcceptsClient":false}}`) },
		"respelled": func(cluster string) { e.declare(t, cluster, "a1", "token", upstreamUser(cluster, "a1")) },
	}
	for way := range ways {
		for n := 1; n <= most; n++ {
			cluster := fmt.Sprintf("%s%d", way, n)
			e.cluster(t, cluster)
			e.tokenAddOn(t, cluster, "a1")
		}
	}
	for way := range ways {
		for n := 1; n <= most; n++ {
			cluster := fmt.Sprintf("%s%d", way, n)
			e.awaitReady(t, cluster, "a1", cluster+"-a1-agent")
		}
	}
	stop()
	left := map[string][]string{"respelled": {"binding", "role", "upstream account"}}
	begun := map[string]string{}
	for way, begin := range ways {
		for n := 1; n <= most; n++ {
			cluster := fmt.Sprintf("%s%d", way, n)
			begin(cluster)
			begun[cluster] = way
			if !e.killed(t, cluster, n, func(ctx context.Context) (bool, error) {
				return cmp.Diff(left[way], e.infrastructure(ctx, t, cluster, "a1")) == "", nil
			}) {
				break
			}
		}
	}
	e.start(t, nil)
	for cluster, way := range begun {
		e.awaitInfrastructure(t, cluster, "a1", left[way]...)
	}
}

// TestOrphans: what an add-on manager did not see go is found at its start, by
// its label; what only looks like it is left alone.
func TestOrphans(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.cluster(t, "c1")
	labels := func(name string) map[string]string {
		return map[string]string{names.LabelAddOnTokenName: name, names.LabelTokenInfrastructure: "true"}
	}
	meta := func(addOn, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "c1", Name: name, Labels: labels(addOn)}
	}
	ref := rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: "x"}
	e.create(t, addOn("c1", "never-token"),
		&corev1.ServiceAccount{ObjectMeta: meta("gone", "gone-agent")},
		&corev1.ServiceAccount{ObjectMeta: meta("gone", "c1-gone-agent")},
		&rbacv1.Role{ObjectMeta: meta("gone", "gone-token-role")},
		&rbacv1.RoleBinding{ObjectMeta: meta("gone", "gone-token-role"), RoleRef: ref},
		&corev1.ServiceAccount{ObjectMeta: meta("never-token", "never-token-agent")},
		&corev1.ServiceAccount{ObjectMeta: meta("gone", "somebody")},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "other-agent"}})
	theirs := map[string]types.UID{}
	for _, name := range []string{"somebody", "other-agent", "default"} {
		live := account("c1", name)
		eventually(t, "there is a service account "+name, func(ctx context.Context) (bool, error) {
			return e.exists(ctx, t, live), nil // Kubernetes makes the last one.
		})
		theirs[name] = live.UID
	}
	e.start(t, nil)
	e.awaitInfrastructure(t, "c1", "gone")
	e.awaitInfrastructure(t, "c1", "never-token")
	for name, uid := range theirs {
		if live := account("c1", name); !e.exists(t.Context(), t, live) || live.UID != uid || live.DeletionTimestamp != nil {
			t.Errorf("the service account %s is gone", name)
		}
	}
}

// TestServerRestart kills the API server while identities are made.
func TestServerRestart(t *testing.T) {
	t.Parallel()
	own := controlplane.Start(t)
	e := newEnvOn(t, own.ControlPlane)
	e.start(t, nil)
	const clusters = 20
	for i := range clusters {
		name := fmt.Sprintf("c%02d", i)
		e.cluster(t, name)
		e.tokenAddOn(t, name, "a1")
	}
	own.StopAPIServer(t)
	own.StartAPIServer(t)
	for i := range clusters {
		name := fmt.Sprintf("c%02d", i)
		e.awaitReady(t, name, "a1", name+"-a1-agent")
		e.awaitInfrastructure(t, name, "a1", byOwn...)
	}
}

// TestTwoManagers: two add-on managers at once, as when a lease is lost, agree:
// they make one identity at a time, leave none behind, and do not go on undoing
// what the other does.
func TestTwoManagers(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	first, second := newWrites(), newWrites()
	e.start(t, first.Wrap)
	e.start(t, second.Wrap)
	const clusters = 10
	for i := range clusters {
		name := fmt.Sprintf("c%d", i)
		e.cluster(t, name)
		e.create(t, addOn(name, "a1"))
		e.declare(t, name, "a1", "token", ownUser(name, "a1"))
		made := e.awaitReady(t, name, "a1", name+"-a1-agent")
		e.declare(t, name, "a1", "token", upstreamUser(name, "a1"))
		e.awaitReady(t, name, "a1", "a1-agent")
		e.awaitInfrastructure(t, name, "a1", "binding", "role", "upstream account")
		e.declare(t, name, "a1", "token", ownUser(name, "a1"))
		if again := e.awaitReady(t, name, "a1", name+"-a1-agent"); again.UID == made.UID {
			t.Errorf("%s: the identity that was taken away is still there", name)
		}
		e.certify(t, name, "a1")
		e.awaitNoCondition(t, name, "a1")
		e.awaitInfrastructure(t, name, "a1")
	}
	var byFirst, bySecond int
	for i := range clusters {
		name := fmt.Sprintf("c%d", i)
		byFirst, bySecond = byFirst+len(first.About(name)), bySecond+len(second.About(name))
		e.awaitInfrastructure(t, name, "a1")
		e.awaitNoCondition(t, name, "a1")
		both := slices.DeleteFunc(slices.Concat(first.About(name), second.About(name)), func(write string) bool {
			return strings.Contains(write, "/events")
		})
		// Four for each of the three identities, and four to take the last away.
		// What a cache shows too late is made, or taken away, once more.
		if alone := 16; len(both) > 2*2*alone {
			t.Errorf("%s: %d writes:\n%s", name, len(both), strings.Join(both, "\n"))
		}
	}
	if byFirst == 0 || bySecond == 0 {
		t.Errorf("one wrote %d times and the other %d times", byFirst, bySecond)
	}
}

// TestLateCondition has an add-on manager say late that an identity is ready, which
// another one has taken away meanwhile.
func TestLateCondition(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.cluster(t, "c1")
	e.cluster(t, "c2")
	e.tokenAddOn(t, "c1", "a1")
	slow := &delay{lifted: make(chan struct{})}
	e.start(t, slow.Wrap)
	eventually(t, "the first sets the condition", func(context.Context) (bool, error) { return slow.begun.Load(), nil })
	e.start(t, nil)
	e.awaitReady(t, "c1", "a1", "c1-a1-agent")
	e.certify(t, "c1", "a1")
	e.awaitNoCondition(t, "c1", "a1")
	// What is done about later news is done after what there was to do.
	e.tokenAddOn(t, "c2", "a1")
	e.awaitReady(t, "c2", "a1", "c2-a1-agent")
	close(slow.lifted)
	eventually(t, "the first is refused", func(context.Context) (bool, error) { return slow.answer.Load() == http.StatusConflict, nil })
	e.awaitNoCondition(t, "c1", "a1")
	e.awaitInfrastructure(t, "c1", "a1")
}

// delay holds the first server-side apply of a status back until it is lifted.
type delay struct {
	begun atomic.Bool
	// answer is its status code.
	answer atomic.Int32
	lifted chan struct{}
	next   http.RoundTripper
}

// Wrap delays a client, for rest.Config.Wrap.
func (d *delay) Wrap(next http.RoundTripper) http.RoundTripper {
	d.next = next
	return d
}

// RoundTrip implements http.RoundTripper.
func (d *delay) RoundTrip(req *http.Request) (*http.Response, error) {
	applied := req.Header.Get("Content-Type") == string(types.ApplyYAMLPatchType) && strings.HasSuffix(req.URL.Path, "/status")
	if applied && d.begun.CompareAndSwap(false, true) {
		select {
		case <-d.lifted:
		case <-req.Context().Done():
		}
		resp, err := d.next.RoundTrip(req)
		if err == nil {
			d.answer.Store(int32(resp.StatusCode))
		}
		return resp, err
	}
	return d.next.RoundTrip(req)
}

// TestStaleCache hides from the add-on manager what it makes: an identity is
// made once all the same, and nothing of it is left behind.
func TestStaleCache(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.cluster(t, "c1")
	blind := blindfold.New(func(req *http.Request) bool {
		selector := req.URL.Query().Get("labelSelector")
		return strings.Contains(selector, names.LabelTokenInfrastructure) || strings.Contains(selector, names.LabelAddOnTokenName)
	})
	e.start(t, blind.Wrap)
	e.tokenAddOn(t, "c1", "a1")
	first := e.awaitReady(t, "c1", "a1", "c1-a1-agent")
	// It makes the second without having seen that the first is there.
	e.declare(t, "c1", "a1", "token", upstreamUser("c1", "a1"))
	e.awaitReady(t, "c1", "a1", "a1-agent")
	e.declare(t, "c1", "a1", "token", ownUser("c1", "a1"))
	if again := e.awaitReady(t, "c1", "a1", "c1-a1-agent"); again.UID != first.UID {
		t.Error("the identity was replaced")
	}
	e.certify(t, "c1", "a1")
	e.awaitNoCondition(t, "c1", "a1")
	e.awaitInfrastructure(t, "c1", "a1")
	// What it learns of too late goes when it learns of it.
	e.tokenAddOn(t, "c1", "a2")
	e.awaitReady(t, "c1", "a2", "c1-a2-agent")
	e.delete(t, addOn("c1", "a2"))
	blind.Lift()
	e.awaitInfrastructure(t, "c1", "a2")
}

// TestStaleAddOns hides from the add-on manager the add-ons that it makes: one
// that no placement wants any more goes when the manager learns of it.
func TestStaleAddOns(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.cluster(t, "c1")
	e.cluster(t, "c2")
	blind := blindfold.New(func(req *http.Request) bool { return strings.HasSuffix(req.URL.Path, "/managedclusteraddons") })
	e.start(t, blind.Wrap)
	e.decide(t, "p", "c1")
	e.create(t, fleet("a1", placed("p")))
	e.awaitInstalled(t, "a1", "c1")
	e.decide(t, "p", "c2")
	e.awaitInstalled(t, "a1", "c1", "c2")
	blind.Lift()
	e.awaitInstalled(t, "a1", "c2")
}
