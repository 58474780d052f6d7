package manifests_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1 "open-cluster-management.io/api/work/v1"
	workv1alpha1 "open-cluster-management.io/api/work/v1alpha1"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/apply"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installation"
)

// patience is how long a rule may take until it is in force.
const patience = await.Patience

// runningAs gives a work an executor.
func runningAs(w *workv1.ManifestWork, namespace, name string) *workv1.ManifestWork {
	w.Spec.Executor = &workv1.ManifestWorkExecutor{Subject: workv1.ManifestWorkExecutorSubject{
		Type:           workv1.ExecutorSubjectTypeServiceAccount,
		ServiceAccount: &workv1.ManifestWorkSubjectServiceAccount{Namespace: namespace, Name: name},
	}}
	return w
}

// configMapManifest is a manifest with a name and a namespace.
func configMapManifest(namespace, name string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":%q,"name":%q}}`, namespace, name)
}

// configMaps are n manifests with names of a length.
func configMaps(n, length int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = configMapManifest("default", fmt.Sprintf("%0*d", length, i))
	}
	return out
}

// executeAs gives groups the right to write works that run as users.
func (a *admission) executeAs(t *testing.T, name string, users []string, groups ...string) {
	t.Helper()
	a.grant(t, name, rbacv1.PolicyRule{
		APIGroups: []string{"work.open-cluster-management.io"}, Resources: []string{"manifestworks"}, ResourceNames: users, Verbs: []string{"execute-as"},
	}, groups...)
}

// TestWorksAdmission: what is wrong with a work for every agent is refused on the hub.
func TestWorksAdmission(t *testing.T) {
	t.Parallel()
	newAdmission(t).refusesBadWorks(t)
}

func (a *admission) refusesBadWorks(t *testing.T) {
	t.Helper()
	worker := a.as(t, "worker", "workers")
	create := func(name string, manifests ...string) func(context.Context) error {
		return func(ctx context.Context) error {
			return worker.Create(ctx, installation.Work("default", name, manifests...))
		}
	}
	change := func(name, body string) func(context.Context) error {
		return func(ctx context.Context) error {
			return worker.Patch(ctx, installation.Work("default", name), client.RawPatch(types.MergePatchType, []byte(body)))
		}
	}
	one := configMapManifest("default", "a")
	other := `{"apiVersion":"v1","kind":"Secret","metadata":{"namespace":"default","name":"a"}}`
	cluster := `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"a"}}`
	attempts := []attempt{
		{"one", "", create("one", one)},
		{"of two kinds, namespaces and names", "", create("several", one, other, cluster, configMapManifest("kube-system", "a"), configMapManifest("default", "b"))},
		{"of two versions", "", create("versions", one, strings.Replace(one, `"v1"`, `"v2"`, 1))},
		{"twice", "duplicate manifest for resource v1 ConfigMap default/a", create("twice", one, other, one)},
		{"twice without a namespace", "duplicate manifest for resource v1 Namespace /a", create("twice", cluster, cluster)},
		{"without a name", "these have none: ConfigMap", create("nameless", one, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default"}}`)},
		{"without metadata", "these have none: ConfigMap", create("nameless", one, `{"apiVersion":"v1","kind":"ConfigMap"}`)},
		{"with a generated name", "these have one: ConfigMap a-", create("generated", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"a-"}}`)},
		{"with both names", "these have one: ConfigMap a-", create("generated", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","generateName":"a-"}}`)},
		{"without a kind", "kind", create("kindless", `{"apiVersion":"v1","metadata":{"name":"a"}}`)},
		{"none", "manifests should not be empty", func(ctx context.Context) error {
			empty := installation.Work("default", "empty")
			empty.Spec.Workload.Manifests = nil
			return worker.Create(ctx, empty)
		}},
		{"emptied", "manifests should not be empty", change("one", `{"spec":{"workload":{"manifests":[]}}}`)},
		{"made a duplicate", "duplicate manifest", change("one", `{"spec":{"workload":{"manifests":[`+one+`,`+one+`]}}}`)},
		{"changed", "", change("one", `{"spec":{"workload":{"manifests":[`+one+`,`+other+`]}}}`)},
	}
	check(t, attempts)
}

// TestLargeWorksAreAdmitted: the cost of the rules must not refuse a work that the
// agent would apply.
func TestLargeWorksAreAdmitted(t *testing.T) {
	t.Parallel()
	a := newAdmission(t)
	worker := a.as(t, "worker", "workers")
	const limit = 500 << 10
	for _, tc := range []struct{ manifests, name int }{{2, 10}, {100, 250}, {250, 30}, {251, 10}, {1000, 10}, {1000, 250}, {5000, 8}} {
		list := configMaps(tc.manifests, tc.name)
		if size := len(strings.Join(list, "")); size > limit {
			t.Fatalf("%d manifests have %d bytes", tc.manifests, size)
		}
		name := fmt.Sprintf("large-%d-%d", tc.manifests, tc.name)
		if err := worker.Create(t.Context(), installation.Work("default", name, list...)); err != nil {
			t.Errorf("%d manifests with names of %d: %v", tc.manifests, tc.name, err)
		}
		if tc.manifests > 250 {
			continue
		}
		err := worker.Create(t.Context(), installation.Work("default", name+"-twice", append(list[1:], list[len(list)-1])...))
		if err == nil || !strings.Contains(err.Error(), "duplicate manifest") {
			t.Errorf("%d manifests with names of %d, one twice: %v", tc.manifests, tc.name, err)
		}
	}
	padded := installation.Work("default", "one-large", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"a":"`+strings.Repeat("x", limit-100)+`"}}`)
	if err := worker.Create(t.Context(), padded); err != nil {
		t.Errorf("one large manifest: %v", err)
	}
	if err := worker.Patch(t.Context(), padded, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`))); err != nil {
		t.Errorf("one large manifest, labelled: %v", err)
	}
}

// TestExecutors: nobody gets by a work what it is not allowed to execute as, by
// creating one or by changing that of another user.
func TestExecutors(t *testing.T) {
	t.Parallel()
	newAdmission(t).asksForExecutors(t)
}

func (a *admission) asksForExecutors(t *testing.T) {
	t.Helper()
	deployer := names.ServiceAccountUser("apps", "deployer")
	a.executeAs(t, "deployer", []string{deployer}, "deployers")
	worker, may := a.as(t, "worker", "workers"), a.as(t, "may", "workers", "deployers")
	await.Success(t, patience, "the role is in force", func(ctx context.Context) error {
		return may.Create(ctx, runningAs(installation.Work("default", "x"), "apps", "deployer"), client.DryRunAll)
	})
	create := func(c client.Client, w *workv1.ManifestWork) func(context.Context) error {
		return func(ctx context.Context) error { return c.Create(ctx, w) }
	}
	change := func(c client.Client, name, body string) func(context.Context) error {
		return func(ctx context.Context) error {
			return c.Patch(ctx, installation.Work("default", name), client.RawPatch(types.MergePatchType, []byte(body)))
		}
	}
	as := func(namespace, name string) string {
		return fmt.Sprintf(`{"spec":{"executor":{"subject":{"type":"ServiceAccount","serviceAccount":{"namespace":%q,"name":%q}}}}}`, namespace, name)
	}
	nameless := installation.Work("default", "x")
	nameless.Spec.Executor = &workv1.ManifestWorkExecutor{Subject: workv1.ManifestWorkExecutorSubject{Type: workv1.ExecutorSubjectTypeServiceAccount}}
	refused := `user "worker" may not write ManifestWorks that run as "` + deployer + `"`
	attempts := []attempt{
		{"without an executor", "", create(worker, installation.Work("default", "nil"))},
		{"with an executor and no right", refused, create(worker, runningAs(installation.Work("default", "x"), "apps", "deployer"))},
		{"with the right", "", create(may, runningAs(installation.Work("default", "held"), "apps", "deployer"))},
		{"as another account", "may not write", create(may, runningAs(installation.Work("default", "x"), "apps", "other"))},
		{"as one of another namespace", "may not write", create(may, runningAs(installation.Work("default", "x"), "default", "deployer"))},
		{"as no account", "must name a ServiceAccount", create(may, nameless)},
		{"given an executor without the right", refused, change(worker, "nil", as("apps", "deployer"))},
		{"given an executor", "", change(may, "nil", as("apps", "deployer"))},
		{"manifests changed without the right", refused, change(worker, "held", `{"spec":{"workload":{"manifests":[`+configMapManifest("a", "b")+`]}}}`)},
		{"manifests changed", "", change(may, "held", `{"spec":{"workload":{"manifests":[`+configMapManifest("a", "b")+`]}}}`)},
		{"moved to another account", "may not write", change(may, "held", as("apps", "other"))},
		{"labelled without the right", "", change(worker, "held", `{"metadata":{"labels":{"a":"b"}}}`)},
		{"finalizer added without the right", "", change(worker, "held", `{"metadata":{"finalizers":["`+names.FinalizerManifestWork+`"]}}`)},
		{"rid of the executor", "", change(worker, "held", `{"spec":{"executor":null}}`)},
	}
	check(t, attempts)
}

// TestNilExecutor: with the gate NilExecutorValidating a work without an executor
// needs a right as well, and a cluster's agent can still finish works.
func TestNilExecutor(t *testing.T) {
	t.Parallel()
	newAdmission(t).asksForNilExecutors(t)
}

func (a *admission) asksForNilExecutors(t *testing.T) {
	t.Helper()
	worker := a.as(t, "worker", "workers")
	if err := worker.Create(t.Context(), withoutExecutor("before")); err != nil {
		t.Fatal(err)
	}
	values := hub()
	values.NilExecutorValidating, values.ReplicaSets = true, true
	objs, err := manifests.RenderHubAdmission(values)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (&apply.Applier{Client: a.admin, FieldManager: "ocm.test"}).Apply(t.Context(), apply.Objects(objs)...); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "open-cluster-management:cluster-manager-work-executor-admin:webhook"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "deployers"}},
	}
	binding.Name = "test-nil-executor"
	if err := a.admin.Create(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	may := a.as(t, "may", "workers", "deployers")
	await.Success(t, patience, "the policy and the role are in force", func(ctx context.Context) error {
		if worker.Create(ctx, withoutExecutor("x"), client.DryRunAll) == nil {
			return errors.New("a user without the right is admitted")
		}
		return may.Create(ctx, withoutExecutor("x"), client.DryRunAll)
	})
	create := func(c client.Client, w *workv1.ManifestWork) func(context.Context) error {
		return func(ctx context.Context) error { return c.Create(ctx, w, client.DryRunAll) }
	}
	set := func(c client.Client) func(context.Context) error {
		return func(ctx context.Context) error {
			return c.Create(ctx, replicaSet("x", withoutExecutor("x")), client.DryRunAll)
		}
	}
	change := func(c client.Client, body string) func(context.Context) error {
		return func(ctx context.Context) error {
			return c.Patch(ctx, withoutExecutor("before"), client.RawPatch(types.MergePatchType, []byte(body)))
		}
	}
	addOns := a.as(t, names.ServiceAccountUser(names.HubNamespace, names.HubAddOnManagerServiceAccount), "workers")
	refused := `may not write ManifestWorks that run as "system:serviceaccount::klusterlet-work-sa"`
	attempts := []attempt{
		{"without the right", refused, create(worker, withoutExecutor("x"))},
		{"with the role of the hub", "", create(may, withoutExecutor("x"))},
		{"by a ManifestWorkReplicaSet without the right", `klusterlet-work-sa" in all namespaces`, set(worker)},
		{"by a ManifestWorkReplicaSet with the role of the hub", "", set(may)},
		{"by the add-on manager", "", create(addOns, withoutExecutor("x"))},
		{"changed without the right", refused, change(worker, `{"spec":{"deleteOption":{"propagationPolicy":"Orphan"}}}`)},
		{"finalizer added", "", change(worker, `{"metadata":{"finalizers":["`+names.FinalizerManifestWork+`"]}}`)},
		{"finalizer removed", "", change(worker, `{"metadata":{"finalizers":null}}`)},
	}
	check(t, attempts)
}

func withoutExecutor(name string) *workv1.ManifestWork { return installation.Work("default", name) }

// replicaSet is a ManifestWorkReplicaSet of a work.
func replicaSet(name string, work *workv1.ManifestWork) *workv1alpha1.ManifestWorkReplicaSet {
	set := &workv1alpha1.ManifestWorkReplicaSet{}
	set.Namespace, set.Name = "default", name
	set.Spec.ManifestWorkTemplate = work.Spec
	set.Spec.PlacementRefs = []workv1alpha1.LocalPlacementReference{{Name: "p"}}
	return set
}

// TestReplicaSetsWithoutController: with the gate off nobody waits in vain.
func TestReplicaSetsWithoutController(t *testing.T) {
	t.Parallel()
	admin := controlplane.Lease(t).Client(t)
	installation.Hub(t, admin, manifests.Hub{})
	await.Success(t, patience, "a ManifestWorkReplicaSet is refused", func(ctx context.Context) error {
		err := admin.Create(ctx, replicaSet("x", installation.Work("", "x")), client.DryRunAll)
		if err != nil && strings.Contains(err.Error(), "enable the feature gate ManifestWorkReplicaSet") {
			return nil
		}
		return errors.Join(err, errors.New("it is not"))
	})
}

// TestReplicaSetAuthors: nobody gets by a ManifestWorkReplicaSet a work that it may not
// write itself, on any cluster.
func TestReplicaSetAuthors(t *testing.T) {
	t.Parallel()
	newAdmission(t).asksAuthorsOfReplicaSets(t)
}

func (a *admission) asksAuthorsOfReplicaSets(t *testing.T) {
	t.Helper()
	deployer := names.ServiceAccountUser("apps", "deployer")
	a.executeAs(t, "deployer", []string{deployer}, "deployers")
	a.grant(t, "sets-of-works", rbacv1.PolicyRule{
		APIGroups: []string{workv1.GroupName}, Resources: []string{"manifestworkreplicasets"}, Verbs: []string{"create", "update", "patch"},
	}, "setters")
	// Permissions in one namespace are not enough.
	local := &rbacv1.RoleBinding{
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "test-deployer"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "local"}},
	}
	local.Namespace, local.Name = "default", "test-local"
	if err := a.admin.Create(t.Context(), local); err != nil {
		t.Fatal(err)
	}
	setter, worker := a.as(t, "setter", "setters"), a.as(t, "worker", "setters", "workers")
	here, may := a.as(t, "here", "setters", "workers", "local"), a.as(t, "may", "setters", "workers", "deployers")
	as := func(name string) *workv1alpha1.ManifestWorkReplicaSet {
		return replicaSet(name, runningAs(installation.Work("", "x"), "apps", "deployer"))
	}
	await.Success(t, patience, "the roles are in force", func(ctx context.Context) error {
		if err := here.Create(ctx, runningAs(installation.Work("default", "x"), "apps", "deployer"), client.DryRunAll); err != nil {
			return err
		}
		return may.Create(ctx, as("x"), client.DryRunAll)
	})
	create := func(c client.Client, set *workv1alpha1.ManifestWorkReplicaSet) func(context.Context) error {
		return func(ctx context.Context) error { return c.Create(ctx, set) }
	}
	change := func(c client.Client, name, body string) func(context.Context) error {
		return func(ctx context.Context) error {
			return c.Patch(ctx, as(name), client.RawPatch(types.MergePatchType, []byte(body)))
		}
	}
	one := configMapManifest("default", "a")
	refused, everywhere := "may not write ManifestWorkReplicaSets", `may not write ManifestWorks that run as "`+deployer+`" in all namespaces`
	attempts := []attempt{
		{"by one who may not write works", refused, create(setter, replicaSet("x", installation.Work("", "x")))},
		{"without an executor", "", create(worker, replicaSet("nil", installation.Work("", "x")))},
		{"with an executor and no right", everywhere, create(worker, as("x"))},
		{"with the right in a namespace", everywhere, create(here, as("x"))},
		{"with the right", "", create(may, as("held"))},
		{"manifests changed without the right", everywhere, change(worker, "held", `{"spec":{"manifestWorkTemplate":{"workload":{"manifests":[`+one+`]}}}}`)},
		{"given an executor without the right", everywhere, change(worker, "nil", `{"spec":{"manifestWorkTemplate":{"executor":{"subject":{"type":"ServiceAccount","serviceAccount":{"namespace":"apps","name":"deployer"}}}}}}`)},
		{"pointed elsewhere without the right", everywhere, change(worker, "held", `{"spec":{"placementRefs":[{"name":"q"}]}}`)},
		{"labelled by one who may not write works", refused, change(setter, "nil", `{"metadata":{"labels":{"a":"b"}}}`)},
		{"annotated without the right", "", change(setter, "held", `{"metadata":{"annotations":{"a":"b"}}}`)},
		{"finalizer added without the right", "", change(setter, "held", `{"metadata":{"finalizers":["`+workv1alpha1.ManifestWorkReplicaSetFinalizer+`"]}}`)},
		{"of no manifests", "manifests should not be empty", change(may, "held", `{"spec":{"manifestWorkTemplate":{"workload":{"manifests":[]}}}}`)},
		{"of the same manifest twice", "duplicate manifest for resource v1 ConfigMap default/a", create(worker, replicaSet("x", installation.Work("", "x", one, one)))},
		{"changed", "", change(may, "held", `{"spec":{"manifestWorkTemplate":{"workload":{"manifests":[`+one+`]}}}}`)},
	}
	check(t, attempts)
}
