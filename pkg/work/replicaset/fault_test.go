package replicaset_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1 "open-cluster-management.io/api/work/v1"
	workv1alpha1 "open-cluster-management.io/api/work/v1alpha1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controllers"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installation"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/interrupt"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/replicaset"
)

// ofWorks is what the paths of sets and works have in common.
const ofWorks = "/work.open-cluster-management.io/"

// wrapped is a connection with something in between.
func wrapped(connection *rest.Config, wrap func(http.RoundTripper) http.RoundTripper) *rest.Config {
	between := rest.CopyConfig(connection)
	between.Wrap(wrap)
	return between
}

// TestInterrupted kills the controller after each of its writes in the life of a set.
// The next one ends what it began, makes no work twice and leaves none behind.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	admin, connection := newHub(t)
	e := &env{admin: admin, name: "interrupted"}
	namespaces(t, admin, "c1", "c2", "c3", e.name)
	for n := 1; ; n++ {
		l := &life{env: e, connection: connection, first: interrupt.After(n, ofWorks, strings.Contains), next: interrupt.Count(strings.Contains)}
		l.end = controllers.Run(t, wrapped(connection, l.first.Wrap), options(), patience, setup(replicaset.Setup))
		l.run(t)
		_ = l.end() // One that was cut off may want to try its last event again.
		var made int
		for _, write := range append(l.first.About(ofWorks), l.next.About(ofWorks)...) {
			if strings.HasPrefix(write, http.MethodPost) {
				made++
			}
		}
		if made != 3 {
			t.Errorf("killed after write %d: %d works were made on 3 clusters: %q, then %q", n, made, l.first.About(ofWorks), l.next.About(ofWorks))
		}
		if l.cut {
			continue
		}
		// Its finalizer twice, two statuses, 3 works made, 2 changed and 3 deleted. The set
		// may be gone before the last write is seen to be cut off.
		if least := 12; n < least {
			t.Errorf("a set takes %d writes, and its controller was killed after %d: %q", least, n-1, l.first.About(ofWorks))
		}
		return
	}
}

// life is that of a set whose controller is killed once.
type life struct {
	*env

	connection  *rest.Config
	first, next *interrupt.Writes
	end         func() error
	cut         bool
}

// reach waits until a state is reached, by the next controller if need be.
func (l *life) reach(t *testing.T, state string, reached func(context.Context) (bool, error)) {
	t.Helper()
	if !l.cut {
		if l.cut = l.first.AwaitCut(t, patience, reached); !l.cut {
			return
		}
		_ = l.end()
		l.end = controllers.Run(t, wrapped(l.connection, l.next.Wrap), options(), patience, setup(replicaset.Setup))
	}
	await.Condition(t, patience, state, reached)
}

func (l *life) run(t *testing.T) {
	t.Helper()
	l.decide(t, "p", "c1", "c2")
	set := l.create(t, l.set("", "p"))
	l.reach(t, "two clusters have the work", func(ctx context.Context) (bool, error) { return l.are(ctx, set, "settings", "c1", "c2") })
	change(t, l.env, set, func(set *workv1alpha1.ManifestWorkReplicaSet) {
		set.Spec.ManifestWorkTemplate = installation.Work("", "other").Spec
	})
	l.reach(t, "two clusters have the new work", func(ctx context.Context) (bool, error) { return l.are(ctx, set, "other", "c1", "c2") })
	l.decide(t, "p", "c2", "c3")
	l.reach(t, "another cluster has the work", func(ctx context.Context) (bool, error) { return l.are(ctx, set, "other", "c2", "c3") })
	if err := l.admin.Delete(t.Context(), set.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	l.reach(t, "the set is gone", func(ctx context.Context) (bool, error) {
		err := l.admin.Get(ctx, client.ObjectKeyFromObject(set), &workv1alpha1.ManifestWorkReplicaSet{})
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
	l.expectWorks(t, set)
}

// are reports whether exactly these clusters have the work with a manifest, and the
// status says so.
func (l *life) are(ctx context.Context, set *workv1alpha1.ManifestWorkReplicaSet, manifest string, clusters ...string) (bool, error) {
	var list workv1.ManifestWorkList
	if err := l.admin.List(ctx, &list); err != nil || len(list.Items) != len(clusters) {
		return false, err
	}
	for i, cluster := range clusters {
		work := &list.Items[i]
		if work.Namespace != cluster || !strings.Contains(string(work.Spec.Workload.Manifests[0].Raw), `"`+manifest+`"`) {
			return false, nil
		}
	}
	live := &workv1alpha1.ManifestWorkReplicaSet{}
	err := l.admin.Get(ctx, client.ObjectKeyFromObject(set), live)
	for _, condition := range live.Status.Conditions {
		if condition.ObservedGeneration != live.Generation {
			return false, err
		}
	}
	return live.Status.Summary.Total == len(clusters) && len(live.Finalizers) == 1, err
}

// requests are those of a client, watches aside.
type requests struct {
	mu  sync.Mutex
	all []string
}

func (r *requests) wrap(next http.RoundTripper) http.RoundTripper {
	return counting{requests: r, next: next}
}

// about returns the requests about a name.
func (r *requests) about(name string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []string
	for _, request := range r.all {
		if strings.Contains(request, "/"+name) {
			found = append(found, request)
		}
	}
	return found
}

type counting struct {
	*requests

	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (c counting) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Query().Get("watch") == "" {
		c.mu.Lock()
		c.all = append(c.all, req.Method+" "+req.URL.String())
		c.mu.Unlock()
	}
	return c.next.RoundTrip(req)
}

// TestRest: a set that is as it should be costs no request, after a restart neither, and
// one whose works come one by one few writes.
func TestRest(t *testing.T) {
	t.Parallel()
	admin, connection := newHub(t)
	first, second := &env{admin: admin, name: "first"}, &env{admin: admin, name: "second"}
	namespaces(t, admin, "c1", "c2", first.name, second.name)
	deploy := func(e *env) {
		e.decide(t, "p", "c1", "c2")
		set := e.create(t, e.set("", "p"))
		e.expectWorks(t, set, "c1", "c2")
		e.ready(t, "c1")
		e.ready(t, "c2")
		e.expect(t, set, rolledOut, metav1.ConditionTrue, "Complete")
		e.expectEvent(t, set, corev1.EventTypeNormal, "Complete", "")
	}
	all := &requests{}
	stop := controllers.Start(t, wrapped(connection, all.wrap), options(), setup(replicaset.Setup))
	deploy(first)
	before := len(all.about(first.name))
	// Finalizer, 2 works, up to 4 statuses, 2 events, and as many conflicts of a late cache.
	if most := 14; before > most {
		t.Errorf("%d requests for two works: %q", before, all.about(first.name))
	}
	deploy(second)
	if got := all.about(first.name); len(got) > before {
		t.Errorf("requests without news: %q", got[before:])
	}
	stop()
	all = &requests{}
	controllers.Start(t, wrapped(connection, all.wrap), options(), setup(replicaset.Setup))
	third := &env{admin: admin, name: "third"}
	namespaces(t, admin, third.name)
	deploy(third)
	if got := append(all.about(first.name), all.about(second.name)...); len(got) > 0 {
		t.Errorf("requests of a restart: %q", got)
	}
}

// TestGateOff: without the gate, and the permissions that come with it, a set says so,
// and takes its works along when it is deleted.
func TestGateOff(t *testing.T) {
	t.Parallel()
	admin, connection := newHub(t)
	e := &env{admin: admin, name: "gate-off"}
	namespaces(t, admin, "c1", e.name)
	stop := controllers.Start(t, connection, options(), setup(replicaset.Setup))
	e.decide(t, "p", "c1")
	background, foreground := e.set("-background", "p"), e.set("-foreground", "p")
	foreground.Spec.CascadeDeletionPolicy = workv1alpha1.Foreground
	both := []*workv1alpha1.ManifestWorkReplicaSet{background, foreground}
	for _, set := range both {
		e.create(t, set)
		e.expectWorks(t, set, "c1")
		e.expectSummary(t, set, workv1alpha1.ManifestWorkReplicaSetSummary{Total: 1, DesiredTotal: 1})
	}
	stop()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "open-cluster-management:cluster-manager-replicasets:controller"}}
	if err := admin.Delete(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	controllers.Start(t, connection, options(), setup(replicaset.SetupRemoval))
	for _, set := range both {
		e.expect(t, set, applied, metav1.ConditionFalse, "NotAsExpected", "the feature gate ManifestWorkReplicaSet of the hub is off")
		e.expectEvent(t, set, corev1.EventTypeWarning, "NotAsExpected", "the feature gate ManifestWorkReplicaSet of the hub is off")
		e.expectSummary(t, set, workv1alpha1.ManifestWorkReplicaSetSummary{Total: 1, DesiredTotal: 1})
		e.expectWorks(t, set, "c1")
	}
	held := installation.Work("c1", foreground.Name)
	change(t, e, held, func(w *workv1.ManifestWork) { w.Finalizers = []string{names.FinalizerManifestWork} })
	for _, set := range both {
		if err := admin.Delete(t.Context(), set.DeepCopy()); err != nil {
			t.Fatal(err)
		}
	}
	e.expectGone(t, background.DeepCopy())
	e.expectWorks(t, background)
	await.Condition(t, patience, "the work is being deleted", func(ctx context.Context) (bool, error) {
		err := admin.Get(ctx, client.ObjectKeyFromObject(held), held)
		return !held.DeletionTimestamp.IsZero(), err
	})
	if err := admin.Get(t.Context(), client.ObjectKeyFromObject(foreground), foreground); err != nil {
		t.Errorf("the set went before its work: %v", err)
	}
	change(t, e, held, func(w *workv1.ManifestWork) { w.Finalizers = nil })
	e.expectGone(t, foreground)
}
