package addon_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/drivers"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controllers"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/interrupt"
)

// life is that of an add-on made from a template of its own, during which the add-on
// manager is killed once.
type life struct {
	*env

	cluster, name string
	writes        *interrupt.Writes
	// end ends the add-on manager that is to be killed, stop the one after it.
	end  func() error
	stop func()
}

// TestTemplateResumes kills the add-on manager after each write in the life of an add-on:
// its installation, a new version of its template, and its removal. The next one goes on.
func TestTemplateResumes(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	const role = "resumes-role"
	e.create(t, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: role}})
	e.letBind(t, role)
	for n := 1; ; n++ {
		l := &life{env: e, cluster: fmt.Sprintf("killed%02d", n), name: fmt.Sprintf("resumes%02d", n)}
		l.writes = interrupt.After(n, l.cluster, inNamespace)
		e.grant(t, "", role, l.name)
		l.end = e.run(t, l.writes.Wrap)
		l.live(t, role)
		if l.stop == nil {
			return
		}
		l.stop()
	}
}

// live installs, changes and removes the add-on.
func (l *life) live(t *testing.T, role string) {
	t.Helper()
	l.env.cluster(t, l.cluster)
	permission := fmt.Sprintf(`{"type":"CurrentCluster","currentCluster":{"clusterRoleName":%q}}`, role)
	l.template(t, l.name, fmt.Sprintf(kubeClient, permission), agentManifest, hookManifest)
	l.create(t, fleet(l.name, templated), addOn(l.cluster, l.name))
	l.step(t, "has what the template says", func(ctx context.Context) (bool, error) { return l.complete(ctx, t, l.cluster, l.name), nil })
	work := deployWork(l.cluster, l.name, 0)
	l.says(t, work, metav1.ConditionTrue, agentID, replicas(1)...)
	l.template(t, l.name, fmt.Sprintf(kubeClient, ""), agentManifest, configMapManifest("m", "1"), hookManifest)
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: l.cluster, Name: names.AddOnTemplateBinding(l.name, "ClusterRole")}}
	l.step(t, "has what the new version says", func(ctx context.Context) (bool, error) {
		return l.exists(ctx, t, work) && len(work.Spec.Workload.Manifests) == 2 && !l.exists(ctx, t, binding), nil
	})
	l.delete(t, addOn(l.cluster, l.name))
	hook := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: l.cluster, Name: names.AddOnPreDeleteWork(l.name)}}
	l.step(t, "runs its hook", func(ctx context.Context) (bool, error) { return l.exists(ctx, t, hook), nil })
	l.says(t, hook, metav1.ConditionTrue, hookID, succeeded())
	l.step(t, "is gone", func(ctx context.Context) (bool, error) {
		return !l.exists(ctx, t, addOn(l.cluster, l.name)) && !l.exists(ctx, t, work) && !l.exists(ctx, t, hook), nil
	})
	if l.stop == nil {
		if err := l.end(); err != nil {
			t.Errorf("the add-on manager: %v", err)
		}
	}
}

// step waits until the add-on is as wanted, with another add-on manager if the first one
// was killed.
func (l *life) step(t *testing.T, what string, reached func(context.Context) (bool, error)) {
	t.Helper()
	if l.stop == nil && l.writes.AwaitCut(t, patience, reached) {
		_ = l.end() // It may want to try its last event again.
		l.stop = l.start(t, nil)
	}
	await.Condition(t, patience, l.name+" "+what, reached, func() any { return l.writes.About(l.cluster) })
}

// complete reports whether an add-on has all that its template says.
func (e *env) complete(ctx context.Context, t *testing.T, cluster, name string) bool {
	t.Helper()
	found := addOn(cluster, name)
	work := deployWork(cluster, name, 0)
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: names.AddOnTemplateBinding(name, "ClusterRole")}}
	progressing := func(reason string) bool {
		condition := apimeta.FindStatusCondition(found.Status.Conditions, addonv1beta1.ManagedClusterAddOnConditionProgressing)
		return condition != nil && condition.Reason == reason
	}
	return e.exists(ctx, t, found) && e.exists(ctx, t, work) && e.exists(ctx, t, binding) && len(binding.Subjects) == 2 &&
		slices.Contains(found.Finalizers, addonv1beta1.AddonPreDeleteHookFinalizer) && len(found.OwnerReferences) == 1 &&
		apimeta.IsStatusConditionTrue(found.Status.Conditions, addonv1beta1.ManagedClusterAddOnRegistrationApplied) &&
		progressing(names.ReasonWaitingForManifestApplied) && len(work.Spec.Workload.Manifests) == 1
}

func (e *env) awaitComplete(t *testing.T, cluster, name string) {
	t.Helper()
	found := addOn(cluster, name)
	eventually(t, cluster+" has what the template says", func(ctx context.Context) (bool, error) {
		return e.complete(ctx, t, cluster, name), nil
	}, func() any { e.get(t.Context(), t, found); return found })
}

// TestTemplateRest: an add-on manager that starts with everything done makes no request
// about it but those of its caches.
func TestTemplateRest(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	const role, name, most = "rest-role", "rest", 10
	e.create(t, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: role}})
	e.letBind(t, role, name)
	e.template(t, name, fmt.Sprintf(kubeClient, `{"type":"CurrentCluster","currentCluster":{"clusterRoleName":"rest-role"}}`), agentManifest, hookManifest)
	e.create(t, fleet(name, templated))
	add := func(cluster string) {
		e.cluster(t, cluster)
		e.create(t, addOn(cluster, name))
		e.awaitComplete(t, cluster, name)
	}
	stop := e.start(t, nil)
	for _, cluster := range []string{"done1", "done2"} {
		add(cluster)
		e.says(t, deployWork(cluster, name, 0), metav1.ConditionTrue, agentID, replicas(1)...)
		e.awaitCondition(t, cluster, name, addonv1beta1.ManagedClusterAddOnConditionProgressing, metav1.ConditionFalse, addonv1beta1.ProgressingReasonCompleted)
		e.awaitCondition(t, cluster, name, addonv1beta1.ManagedClusterAddOnConditionAvailable, metav1.ConditionTrue, addonv1beta1.AddonAvailableReasonProbeAvailable)
	}
	stop()
	requests := &requests{}
	e.start(t, requests.wrap)
	add("last")
	if got := requests.about("/namespaces/done"); len(got) > 0 {
		t.Errorf("without news it made the requests\n%s", strings.Join(got, "\n"))
	}
	if got := requests.about("/namespaces/last/"); len(got) > most {
		t.Errorf("an add-on costs %d requests:\n%s", len(got), strings.Join(got, "\n"))
	}
	e.says(t, deployWork("last", name, 0), metav1.ConditionFalse, agentID)
	eventually(t, "metrics", func(context.Context) (bool, error) {
		deployed, not := e.measure(t, "ocm_addon_template_deployed", "ocm_addon_template_not_deployed")
		return deployed == 2 && maps.Equal(not, map[string]string{"last/" + name: addonv1beta1.AddonManifestAppliedReasonManifestsApplyFailed}), nil
	})
}

// requests are those of a client.
type requests struct {
	mu  sync.Mutex
	all []string
}

type noted struct {
	*requests

	next http.RoundTripper
}

func (r *requests) wrap(next http.RoundTripper) http.RoundTripper { return noted{r, next} }

// RoundTrip implements http.RoundTripper.
func (n noted) RoundTrip(req *http.Request) (*http.Response, error) {
	n.mu.Lock()
	n.all = append(n.all, req.Method+" "+req.URL.Path)
	n.mu.Unlock()
	return n.next.RoundTrip(req)
}

func (r *requests) about(part string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.all), func(request string) bool { return !strings.Contains(request, part) })
}

// TestForcedDetach: a cluster that is gone for good is let go with an add-on whose hook
// cannot run.
func TestForcedDetach(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.start(t, nil)
	objects, err := hub.CacheOptions()
	if err != nil {
		t.Fatal(err)
	}
	registration := e.cp.ConfigFor(t, names.ServiceAccountUser(names.HubNamespace, names.HubRegistrationServiceAccount))
	controllers.Start(t, registration, manager.Options{Cache: objects}, func(ctx context.Context, mgr manager.Manager) error {
		return hub.Setup(ctx, mgr, hub.Config{
			IdentityAnnotations: drivers.All().Annotations(),
			Namespace:           names.HubNamespace, ResourceCleanup: true, CleanupResources: hub.DefaultCleanupResources(), Clock: clock.RealClock{},
		})
	})
	const cluster, name = "dead", "forced"
	e.cluster(t, cluster)
	eventually(t, "the cluster is accepted", func(ctx context.Context) (bool, error) {
		found := managedCluster(cluster)
		e.get(ctx, t, found)
		return len(found.Finalizers) > 0, nil
	})
	e.template(t, name, "", agentManifest, hookManifest)
	e.create(t, fleet(name, templated), addOn(cluster, name))
	work := deployWork(cluster, name, 0)
	e.awaitWork(t, work, "is made", is)
	hook := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: names.AddOnPreDeleteWork(name)}}
	hold := func(work *workv1.ManifestWork) { // As the work agent does.
		e.merge(t, work, `{"metadata":{"finalizers":["`+names.FinalizerManifestWork+`"]}}`)
	}
	hold(work)
	e.delete(t, managedCluster(cluster))
	e.awaitWork(t, hook, "is made", is)
	hold(hook)
	e.awaitCondition(t, cluster, name, addonv1beta1.ManagedClusterAddOnHookManifestCompleted, metav1.ConditionFalse, names.ReasonHookNotCompleted)
	e.merge(t, managedCluster(cluster), `{"metadata":{"annotations":{"`+names.AnnotationForceDetach+`":"true"}}}`)
	eventually(t, "the cluster is gone with all that it had", func(ctx context.Context) (bool, error) {
		return !e.exists(ctx, t, managedCluster(cluster)) && !e.exists(ctx, t, addOn(cluster, name)) &&
			!e.exists(ctx, t, deployWork(cluster, name, 0)) && !e.exists(ctx, t, hook), nil
	})
}
