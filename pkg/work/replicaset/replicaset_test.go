package replicaset_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	workv1alpha1 "open-cluster-management.io/api/work/v1alpha1"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controllers"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installation"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/hub"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/replicaset"
)

const patience = await.Patience

// env is a hub with three clusters, and a namespace for the sets of one test.
type env struct {
	admin client.Client
	// name is that of the namespace and of its sets: the works of a cluster are in one
	// namespace.
	name string
}

// start starts a hub with the controller.
func start(t *testing.T) client.Client {
	t.Helper()
	admin, connection := newHub(t)
	controllers.Start(t, connection, options(), setup(replicaset.Setup))
	return admin
}

// newHub starts a hub, and returns a connection to it with the permissions of the hub
// registration controller, in whose process the controller runs.
func newHub(t *testing.T) (client.Client, *rest.Config) {
	t.Helper()
	cp := controlplane.Lease(t)
	admin := cp.Client(t)
	// With this gate the controller needs a permission for every work.
	installation.Hub(t, admin, manifests.Hub{ReplicaSets: true, NilExecutorValidating: true})
	return admin, cp.ConfigFor(t, names.ServiceAccountUser(names.HubNamespace, names.HubRegistrationServiceAccount))
}

func options() manager.Options {
	return manager.Options{Cache: cache.Options{ByObject: hub.CacheObjects()}}
}

func setup(add func(manager.Manager) error) controllers.Setup {
	return func(_ context.Context, mgr manager.Manager) error { return add(mgr) }
}

// TestReplicaSets runs the tests that share a hub.
func TestReplicaSets(t *testing.T) {
	t.Parallel()
	admin := start(t)
	namespaces(t, admin, "c1", "c2", "c3")
	for name, test := range map[string]func(*testing.T, *env){
		"works-follow-decisions":       testWorksFollowDecisions,
		"changed-works-are-repaired":   testChangedWorksAreRepaired,
		"other-works-are-safe":         testOtherWorksAreSafe,
		"placements-without-decisions": testPlacementsWithoutDecisions,
		"two-placements":               testTwoPlacements,
		"rollout-in-steps":             testRolloutInSteps,
		"invalid-strategy":             testInvalidStrategy,
		"names-that-are-too-long":      testNamesThatAreTooLong,
		"refused-works":                testRefusedWorks,
		"cascade-deletion":             testCascadeDeletion,
		"leaving-clusters":             testLeavingClusters,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespaces(t, admin, name)
			test(t, &env{admin: admin, name: name})
		})
	}
}

func namespaces(t *testing.T, admin client.Client, all ...string) {
	t.Helper()
	for _, name := range all {
		if err := admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
}

// decide makes the one decision of a placement.
func (e *env) decide(t *testing.T, placement string, clusters ...string) {
	t.Helper()
	decision := &clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
		Namespace: e.name, Name: placement + "-1", Labels: map[string]string{clusterv1beta1.PlacementLabel: placement},
	}}
	if err := e.admin.Create(t.Context(), decision); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	if err := e.admin.Get(t.Context(), client.ObjectKeyFromObject(decision), decision); err != nil {
		t.Fatal(err)
	}
	decision.Status.Decisions = []clusterv1beta1.ClusterDecision{}
	for _, cluster := range clusters {
		decision.Status.Decisions = append(decision.Status.Decisions, clusterv1beta1.ClusterDecision{ClusterName: cluster})
	}
	if err := e.admin.Status().Update(t.Context(), decision); err != nil {
		t.Fatal(err)
	}
}

// set is a set of one ConfigMap on the clusters of placements.
func (e *env) set(suffix string, placements ...string) *workv1alpha1.ManifestWorkReplicaSet {
	set := &workv1alpha1.ManifestWorkReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: e.name, Name: e.name + suffix}}
	set.Spec.ManifestWorkTemplate = installation.Work("", "settings").Spec
	for _, placement := range placements {
		set.Spec.PlacementRefs = append(set.Spec.PlacementRefs, workv1alpha1.LocalPlacementReference{
			Name: placement, RolloutStrategy: clusterv1alpha1.RolloutStrategy{Type: clusterv1alpha1.All},
		})
	}
	return set
}

func (e *env) create(t *testing.T, set *workv1alpha1.ManifestWorkReplicaSet) *workv1alpha1.ManifestWorkReplicaSet {
	t.Helper()
	if err := e.admin.Create(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	return set
}

// change changes an object.
func change[T client.Object](t *testing.T, e *env, object T, edit func(T)) {
	t.Helper()
	if err := e.admin.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		t.Fatal(err)
	}
	before, _ := object.DeepCopyObject().(client.Object)
	edit(object)
	if err := e.admin.Patch(t.Context(), object, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

// conditions sets conditions of a work about its last change, as its agent does.
func (e *env) conditions(t *testing.T, cluster string, kinds ...string) {
	t.Helper()
	work := &workv1.ManifestWork{}
	if err := e.admin.Get(t.Context(), client.ObjectKey{Namespace: cluster, Name: e.name}, work); err != nil {
		t.Fatal(err)
	}
	before := work.DeepCopy()
	for _, kind := range kinds {
		apimeta.SetStatusCondition(&work.Status.Conditions, metav1.Condition{
			Type: kind, Status: metav1.ConditionTrue, Reason: "Test", ObservedGeneration: work.Generation,
		})
	}
	if err := e.admin.Status().Patch(t.Context(), work, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

func (e *env) ready(t *testing.T, cluster string) {
	t.Helper()
	e.conditions(t, cluster, workv1.WorkApplied, workv1.WorkAvailable)
}

// expectWorks waits until the works of a set are in the namespaces of these clusters.
func (e *env) expectWorks(t *testing.T, set *workv1alpha1.ManifestWorkReplicaSet, want ...string) {
	t.Helper()
	await.Success(t, patience, "the works are on "+strings.Join(want, ", "), func(ctx context.Context) error {
		var list workv1.ManifestWorkList
		if err := e.admin.List(ctx, &list, client.MatchingLabels{workv1alpha1.ManifestWorkReplicaSetControllerNameLabelKey: set.Namespace + "." + set.Name}); err != nil {
			return err
		}
		got := []string{}
		for i := range list.Items {
			if list.Items[i].Name != set.Name {
				return errors.New(list.Items[i].Name)
			}
			got = append(got, list.Items[i].Namespace)
		}
		slices.Sort(got)
		if diff := cmp.Diff(append([]string{}, want...), got); diff != "" {
			return errors.New(diff)
		}
		return nil
	})
}

// expect waits until a set has a condition, with texts in its message.
func (e *env) expect(t *testing.T, set *workv1alpha1.ManifestWorkReplicaSet, kind string, status metav1.ConditionStatus, reason string, texts ...string) {
	t.Helper()
	await.Success(t, patience, kind+" is "+reason, func(ctx context.Context) error {
		live := &workv1alpha1.ManifestWorkReplicaSet{}
		if err := e.admin.Get(ctx, client.ObjectKeyFromObject(set), live); err != nil {
			return err
		}
		c := apimeta.FindStatusCondition(live.Status.Conditions, kind)
		if c == nil || c.Status != status || c.Reason != reason || c.ObservedGeneration != live.Generation {
			return fmt.Errorf("%+v", c)
		}
		for _, text := range texts {
			if !strings.Contains(c.Message, text) {
				return fmt.Errorf("%+v", c)
			}
		}
		return nil
	})
}

func (e *env) expectSummary(t *testing.T, set *workv1alpha1.ManifestWorkReplicaSet, want workv1alpha1.ManifestWorkReplicaSetSummary) {
	t.Helper()
	await.Success(t, patience, "the summary", func(ctx context.Context) error {
		live := &workv1alpha1.ManifestWorkReplicaSet{}
		if err := e.admin.Get(ctx, client.ObjectKeyFromObject(set), live); err != nil {
			return err
		}
		if diff := cmp.Diff(want, live.Status.Summary); diff != "" {
			return errors.New(diff)
		}
		return nil
	})
}

// expectEvent waits for an event about a set.
func (e *env) expectEvent(t *testing.T, set *workv1alpha1.ManifestWorkReplicaSet, kind, reason, text string) {
	t.Helper()
	await.Success(t, patience, "an event "+reason, func(ctx context.Context) error {
		var list eventsv1.EventList
		if err := e.admin.List(ctx, &list, client.InNamespace(set.Namespace)); err != nil {
			return err
		}
		var others []string
		for i := range list.Items {
			it := &list.Items[i]
			if it.Regarding.Name == set.Name && it.Type == kind && it.Reason == reason && strings.Contains(it.Note, text) {
				return nil
			}
			others = append(others, it.Regarding.Name+": "+it.Type+" "+it.Reason+": "+it.Note)
		}
		return fmt.Errorf("there are %q", others)
	})
}

func (e *env) expectGone(t *testing.T, object client.Object) {
	t.Helper()
	await.Success(t, patience, object.GetName()+" is gone", func(ctx context.Context) error {
		err := e.admin.Get(ctx, client.ObjectKeyFromObject(object), object)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, errors.New("it still exists"))
	})
}

const (
	verified  = workv1alpha1.ManifestWorkReplicaSetConditionPlacementVerified
	rolledOut = workv1alpha1.ManifestWorkReplicaSetConditionPlacementRolledOut
	applied   = workv1alpha1.ManifestWorkReplicaSetConditionManifestworkApplied
)

// testWorksFollowDecisions: each cluster that is chosen has the work, with the labels by
// which OCM finds it, and no other has.
func testWorksFollowDecisions(t *testing.T, e *env) {
	t.Helper()
	e.decide(t, "p", "c1", "c2")
	set := e.set("", "p")
	set.Labels = map[string]string{"team": "fleet"}
	set.Spec.ManifestWorkTemplate.Executor = &workv1.ManifestWorkExecutor{Subject: workv1.ManifestWorkExecutorSubject{
		Type: workv1.ExecutorSubjectTypeServiceAccount, ServiceAccount: &workv1.ManifestWorkSubjectServiceAccount{Namespace: "apps", Name: "deployer"},
	}}
	e.create(t, set)
	e.expectWorks(t, set, "c1", "c2")
	work := &workv1.ManifestWork{}
	if err := e.admin.Get(t.Context(), client.ObjectKey{Namespace: "c1", Name: e.name}, work); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"team": "fleet", "work.open-cluster-management.io/manifestworkreplicaset": e.name + "." + e.name, "work.open-cluster-management.io/placementname": "p",
	}
	if diff := cmp.Diff(want, work.Labels); diff != "" || work.Spec.Executor.Subject.ServiceAccount.Name != "deployer" {
		t.Errorf("labels (-want +got):\n%s\nspec: %+v", diff, work.Spec)
	}
	e.expect(t, set, verified, metav1.ConditionTrue, "AsExpected")
	e.expect(t, set, rolledOut, metav1.ConditionFalse, "Progressing")
	e.expect(t, set, applied, metav1.ConditionFalse, "NotAsExpected")
	e.ready(t, "c1")
	e.ready(t, "c2")
	e.expect(t, set, applied, metav1.ConditionTrue, "AsExpected")
	e.expect(t, set, rolledOut, metav1.ConditionTrue, "Complete")
	e.expectEvent(t, set, corev1.EventTypeNormal, "Complete", "2 of 2 clusters succeeded")
	e.expectSummary(t, set, workv1alpha1.ManifestWorkReplicaSetSummary{Total: 2, DesiredTotal: 2, Applied: 2, Available: 2, Updated: 2})
	if err := e.admin.Get(t.Context(), client.ObjectKeyFromObject(set), set); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(set.Finalizers, []string{"work.open-cluster-management.io/manifest-work-cleanup"}) {
		t.Errorf("finalizers %q", set.Finalizers)
	}
	if got := set.Status.PlacementsSummary; len(got) != 1 || got[0].Name != "p" || got[0].AvailableDecisionGroups != "1 (2 / 2 clusters applied)" || got[0].Summary.Total != 2 {
		t.Errorf("placements %+v", got)
	}

	kept := installation.Work("c2", e.name)
	if err := e.admin.Get(t.Context(), client.ObjectKeyFromObject(kept), kept); err != nil {
		t.Fatal(err)
	}
	version := kept.ResourceVersion
	e.decide(t, "p", "c2", "c3")
	e.expectWorks(t, set, "c2", "c3")
	if err := e.admin.Get(t.Context(), client.ObjectKeyFromObject(kept), kept); err != nil || kept.ResourceVersion != version {
		t.Errorf("a work that is as it should be was written: %v", err)
	}
	change(t, e, set, func(set *workv1alpha1.ManifestWorkReplicaSet) {
		set.Spec.ManifestWorkTemplate = installation.Work("", "other").Spec
		set.Labels = map[string]string{"team": "apps"}
	})
	await.Success(t, patience, "the work is changed", func(ctx context.Context) error {
		if err := e.admin.Get(ctx, client.ObjectKey{Namespace: "c2", Name: e.name}, work); err != nil {
			return err
		}
		if raw := string(work.Spec.Workload.Manifests[0].Raw); !strings.Contains(raw, `"other"`) || work.Spec.Executor != nil || work.Labels["team"] != "apps" {
			return fmt.Errorf("%s, %+v", raw, work)
		}
		return nil
	})
}

// testChangedWorksAreRepaired: a work is what its set says, and comes back.
func testChangedWorksAreRepaired(t *testing.T, e *env) {
	t.Helper()
	e.decide(t, "p", "c1", "c2")
	set := e.create(t, e.set("", "p"))
	e.expectWorks(t, set, "c1", "c2")
	change(t, e, installation.Work("c1", e.name), func(w *workv1.ManifestWork) {
		w.Spec = installation.Work("", "edited").Spec
		w.Labels["own"] = "label"
	})
	gone := installation.Work("c2", e.name)
	if err := e.admin.Delete(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	await.Success(t, patience, "the work is repaired", func(ctx context.Context) error {
		work := &workv1.ManifestWork{}
		if err := e.admin.Get(ctx, client.ObjectKey{Namespace: "c1", Name: e.name}, work); err != nil {
			return err
		}
		if raw := string(work.Spec.Workload.Manifests[0].Raw); !strings.Contains(raw, `"settings"`) || work.Labels["own"] != "label" {
			return fmt.Errorf("%s, %q", raw, work.Labels)
		}
		return nil
	})
	e.expectWorks(t, set, "c1", "c2")
}

// testOtherWorksAreSafe: a work of that name that is not the set's is neither changed
// nor deleted, and the set says that it is in the way.
func testOtherWorksAreSafe(t *testing.T, e *env) {
	t.Helper()
	own := installation.Work("c1", e.name, configMap("own"))
	if err := e.admin.Create(t.Context(), own); err != nil {
		t.Fatal(err)
	}
	e.decide(t, "p", "c1", "c2")
	set := e.create(t, e.set("", "p"))
	e.expectWorks(t, set, "c2")
	e.ready(t, "c2")
	e.expect(t, set, applied, metav1.ConditionFalse, "NotAsExpected", "ManifestWork c1/"+e.name+" does not belong to this ManifestWorkReplicaSet")
	e.expect(t, set, rolledOut, metav1.ConditionFalse, "Progressing")
	if err := e.admin.Delete(t.Context(), set.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	e.expectGone(t, set.DeepCopy())
	e.expectWorks(t, set)
	version := own.ResourceVersion
	if err := e.admin.Get(t.Context(), client.ObjectKeyFromObject(own), own); err != nil || own.ResourceVersion != version {
		t.Errorf("the other work was touched: %v", err)
	}
}

func configMap(name string) string {
	return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":"` + name + `"}}`
}

// testPlacementsWithoutDecisions: a placement that nobody decided keeps what it chose,
// one that chooses nothing has nothing.
func testPlacementsWithoutDecisions(t *testing.T, e *env) {
	t.Helper()
	set := e.create(t, e.set("", "p"))
	e.expect(t, set, verified, metav1.ConditionFalse, "PlacementDecisionNotFound")
	e.expectEvent(t, set, corev1.EventTypeWarning, "PlacementDecisionNotFound", "no PlacementDecision for p")
	e.expect(t, set, applied, metav1.ConditionFalse, "NotAsExpected")
	e.decide(t, "p", "c1")
	e.expectWorks(t, set, "c1")
	decision := &clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{Namespace: e.name, Name: "p-1"}}
	if err := e.admin.Delete(t.Context(), decision); err != nil {
		t.Fatal(err)
	}
	e.expect(t, set, verified, metav1.ConditionFalse, "PlacementDecisionNotFound")
	e.expectWorks(t, set, "c1")
	e.decide(t, "p")
	e.expectWorks(t, set)
	e.expect(t, set, verified, metav1.ConditionFalse, "PlacementDecisionEmpty")
	e.expect(t, set, applied, metav1.ConditionFalse, "PlacementDecisionEmpty")
	e.expectEvent(t, set, corev1.EventTypeWarning, "PlacementDecisionEmpty", "choose no cluster")
}

// testTwoPlacements: a cluster that both choose has one work, and keeps it as long as
// one of them chooses it.
func testTwoPlacements(t *testing.T, e *env) {
	t.Helper()
	e.decide(t, "p", "c1", "c2")
	e.decide(t, "q", "c2", "c3")
	set := e.create(t, e.set("", "p", "q"))
	e.expectWorks(t, set, "c1", "c2", "c3")
	e.expectSummary(t, set, workv1alpha1.ManifestWorkReplicaSetSummary{Total: 3, DesiredTotal: 3})
	work := &workv1.ManifestWork{}
	if err := e.admin.Get(t.Context(), client.ObjectKey{Namespace: "c2", Name: e.name}, work); err != nil {
		t.Fatal(err)
	}
	uid := work.UID
	change(t, e, set, func(set *workv1alpha1.ManifestWorkReplicaSet) { set.Spec.PlacementRefs = set.Spec.PlacementRefs[1:] })
	e.expectWorks(t, set, "c2", "c3")
	await.Success(t, patience, "the work has the label of the other placement", func(ctx context.Context) error {
		if err := e.admin.Get(ctx, client.ObjectKeyFromObject(work), work); err != nil {
			return err
		}
		if work.UID != uid || work.Labels[workv1alpha1.ManifestWorkReplicaSetPlacementNameLabelKey] != "q" {
			return fmt.Errorf("%+v", work.ObjectMeta)
		}
		return nil
	})
}

// testRolloutInSteps: the next cluster has its turn when the one before is available.
func testRolloutInSteps(t *testing.T, e *env) {
	t.Helper()
	e.decide(t, "p", "c1", "c2", "c3")
	set := e.set("", "p")
	set.Spec.PlacementRefs[0].RolloutStrategy = clusterv1alpha1.RolloutStrategy{
		Type: clusterv1alpha1.Progressive, Progressive: &clusterv1alpha1.RolloutProgressive{MaxConcurrency: intstr.FromInt32(1)},
	}
	e.create(t, set)
	e.expectSummary(t, set, workv1alpha1.ManifestWorkReplicaSetSummary{Total: 1, DesiredTotal: 3})
	e.expectWorks(t, set, "c1")
	e.conditions(t, "c1", workv1.WorkApplied)
	e.expectSummary(t, set, workv1alpha1.ManifestWorkReplicaSetSummary{Total: 1, DesiredTotal: 3, Applied: 1, Updated: 1})
	e.expectWorks(t, set, "c1")
	e.ready(t, "c1")
	e.expectWorks(t, set, "c1", "c2")
	e.conditions(t, "c2", workv1.WorkApplied, workv1.WorkAvailable, workv1.WorkDegraded)
	e.expect(t, set, applied, metav1.ConditionFalse, "NotAsExpected")
	e.expect(t, set, rolledOut, metav1.ConditionFalse, "Progressing", "1 failed")
	e.expectWorks(t, set, "c1", "c2")
}

// testInvalidStrategy: what is wrong with a strategy is said, and nothing is deleted.
func testInvalidStrategy(t *testing.T, e *env) {
	t.Helper()
	e.decide(t, "p", "c1")
	set := e.create(t, e.set("", "p"))
	e.expectWorks(t, set, "c1")
	change(t, e, set, func(set *workv1alpha1.ManifestWorkReplicaSet) {
		set.Spec.PlacementRefs[0].RolloutStrategy = clusterv1alpha1.RolloutStrategy{
			Type: clusterv1alpha1.All, All: &clusterv1alpha1.RolloutAll{RolloutConfig: clusterv1alpha1.RolloutConfig{ProgressDeadline: "1|"}},
		}
	})
	e.expect(t, set, verified, metav1.ConditionFalse, "NotAsExpected")
	e.expectWorks(t, set, "c1")
}

// testNamesThatAreTooLong: the name of a set must fit into a label.
func testNamesThatAreTooLong(t *testing.T, e *env) {
	t.Helper()
	e.decide(t, "p", "c1")
	set := e.create(t, e.set(strings.Repeat("x", 60), "p"))
	e.expect(t, set, applied, metav1.ConditionFalse, "NotAsExpected", "shorten the name")
	if err := e.admin.Delete(t.Context(), set.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	e.expectGone(t, set)
}

// testRefusedWorks: a cluster that cannot have its work keeps no other waiting.
func testRefusedWorks(t *testing.T, e *env) {
	t.Helper()
	e.decide(t, "p", "unknown", "c1")
	set := e.create(t, e.set("", "p"))
	e.expectWorks(t, set, "c1")
	e.expectEvent(t, set, corev1.EventTypeWarning, "NotAsExpected", "create ManifestWork unknown/")
	e.expect(t, set, applied, metav1.ConditionFalse, "NotAsExpected", "create ManifestWork unknown/"+e.name+`: namespaces "unknown" not found`)
}

// testCascadeDeletion: the works go with their set, which waits for them if it says so.
func testCascadeDeletion(t *testing.T, e *env) {
	t.Helper()
	e.decide(t, "p", "c1")
	background, foreground := e.set("-background", "p"), e.set("-foreground", "p")
	foreground.Spec.CascadeDeletionPolicy = workv1alpha1.Foreground
	for _, set := range []*workv1alpha1.ManifestWorkReplicaSet{background, foreground} {
		e.create(t, set)
		e.expectWorks(t, set, "c1")
		change(t, e, installation.Work("c1", set.Name), func(w *workv1.ManifestWork) { w.Finalizers = []string{names.FinalizerManifestWork} })
		if err := e.admin.Delete(t.Context(), set.DeepCopy()); err != nil {
			t.Fatal(err)
		}
	}
	e.expectGone(t, background.DeepCopy())
	for _, set := range []*workv1alpha1.ManifestWorkReplicaSet{background, foreground} {
		work := installation.Work("c1", set.Name)
		await.Success(t, patience, set.Name+" is being deleted", func(ctx context.Context) error {
			err := e.admin.Get(ctx, client.ObjectKeyFromObject(work), work)
			if err == nil && work.DeletionTimestamp.IsZero() {
				return errors.New("it is not")
			}
			return err
		})
	}
	if err := e.admin.Get(t.Context(), client.ObjectKeyFromObject(foreground), foreground); err != nil {
		t.Errorf("the set went before its work: %v", err)
	}
	change(t, e, installation.Work("c1", foreground.Name), func(w *workv1.ManifestWork) { w.Finalizers = nil })
	e.expectGone(t, foreground)
}

// testLeavingClusters: a cluster that is being deleted gets no work, however long it is
// chosen, and what it has goes with it.
func testLeavingClusters(t *testing.T, e *env) {
	t.Helper()
	leaving := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "leaving", Finalizers: []string{names.FinalizerRegistration}}}
	if err := e.admin.Create(t.Context(), leaving); err != nil {
		t.Fatal(err)
	}
	namespaces(t, e.admin, leaving.Name)
	e.decide(t, "p", "c1", leaving.Name)
	set := e.create(t, e.set("", "p"))
	e.expectWorks(t, set, "c1", leaving.Name)
	if err := e.admin.Delete(t.Context(), leaving); err != nil {
		t.Fatal(err)
	}
	// Anything that has the set looked at again.
	e.ready(t, "c1")
	e.expectSummary(t, set, workv1alpha1.ManifestWorkReplicaSetSummary{Total: 1, DesiredTotal: 1, Applied: 1, Available: 1, Updated: 1})
	e.expectWorks(t, set, "c1", leaving.Name)
	if err := e.admin.Delete(t.Context(), installation.Work(leaving.Name, e.name)); err != nil {
		t.Fatal(err)
	}
	change(t, e, set, func(set *workv1alpha1.ManifestWorkReplicaSet) { set.Labels = map[string]string{"a": "b"} })
	e.expectWorks(t, set, "c1")
	await.Success(t, patience, "the other work is changed", func(ctx context.Context) error {
		work := &workv1.ManifestWork{}
		if err := e.admin.Get(ctx, client.ObjectKey{Namespace: "c1", Name: e.name}, work); err != nil || work.Labels["a"] == "b" {
			return err
		}
		return fmt.Errorf("its labels are %q", work.Labels)
	})
	e.expectWorks(t, set, "c1")
}

// TestHubIsTakenApart: whether or not the gate is on, the sets go with their CRD when the
// CRD of the works went before it.
func TestHubIsTakenApart(t *testing.T) {
	t.Parallel()
	for name, last := range map[string]func(manager.Manager) error{"gate-on": replicaset.Setup, "gate-off": replicaset.SetupRemoval} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			admin, connection := newHub(t)
			e := &env{admin: admin, name: name}
			stop := controllers.Start(t, connection, options(), setup(replicaset.Setup))
			namespaces(t, admin, "c1", e.name)
			e.decide(t, "p", "c1")
			e.expectWorks(t, e.create(t, e.set("", "p")), "c1")
			stop()
			controllers.Start(t, connection, options(), setup(last))
			for _, kind := range []string{"manifestworks", "manifestworkreplicasets"} {
				crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: kind + ".work.open-cluster-management.io"}}
				if err := admin.Delete(t.Context(), crd); err != nil {
					t.Fatal(err)
				}
				e.expectGone(t, crd)
			}
		})
	}
}
