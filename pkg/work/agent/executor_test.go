package agent_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installation"
)

// allow gives the ServiceAccount "executor" of the place permissions in its namespace.
func (p *place) allow(t *testing.T, name string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	installation.Create(t, p.managed,
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: p.cluster, Name: name}, Rules: rules},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: p.cluster, Name: name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
			Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: p.cluster, Name: "executor"}},
		})
}

func (p *place) execute(w *workv1.ManifestWork) {
	w.Spec.Executor = &workv1.ManifestWorkExecutor{Subject: workv1.ManifestWorkExecutorSubject{
		Type:           workv1.ExecutorSubjectTypeServiceAccount,
		ServiceAccount: &workv1.ManifestWorkSubjectServiceAccount{Namespace: p.cluster, Name: "executor"},
	}}
}

// testExecutor has an executor without a permission, and then with it.
func testExecutor(t *testing.T, p *place) {
	t.Helper()
	write := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "create", "update", "patch"}}
	p.allow(t, "write", write)
	p.start(t)
	work := p.create(t, "app", oneMap, p.execute)
	c := p.manifestReaches(t, work, 0, workv1.ManifestApplied, workv1.AppliedManifestFailed)
	if !strings.Contains(c.Message, "may not delete it") {
		t.Error(c.Message)
	}
	p.finds(t, "one", missing)
	p.allow(t, "delete", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"delete"}})
	p.change(t, work, func(w *workv1.ManifestWork) { w.Labels = map[string]string{"look": "now"} })
	p.reaches(t, work, "Applied=True", "Available=True")
}

// testEscalation has an executor that may write Roles, but does not have what they grant.
func testEscalation(t *testing.T, p *place) {
	t.Helper()
	p.allow(t, "roles", rbacv1.PolicyRule{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"roles"}, Verbs: []string{"get", "create", "update", "patch", "delete"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}})
	p.start(t)
	work := p.create(t, "app", `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: more, namespace: NS}
rules: [{apiGroups: [""], resources: [secrets], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: same, namespace: NS}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]`, p.execute)
	c := p.manifestReaches(t, work, 0, workv1.ManifestApplied, workv1.AppliedManifestFailed)
	if !strings.Contains(c.Message, "is attempting to grant RBAC permissions not currently held") {
		t.Error(c.Message)
	}
	p.manifestReaches(t, work, 1, workv1.ManifestApplied, workv1.AppliedManifestComplete)
	p.reaches(t, work, "Applied=False", "Available=False")
}

// testTakenOver has an executor that ignores the role of an existing RoleBinding, which
// grants more than the executor has: it may write a RoleBinding as its manifest says, but
// not this one.
func testTakenOver(t *testing.T, p *place) {
	t.Helper()
	every := []string{"get", "create", "update", "patch", "delete"}
	p.allow(t, "mine", rbacv1.PolicyRule{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"rolebindings"}, Verbs: every})
	powerful := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.cluster, Name: "platform"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: "admin"}},
	}
	installation.Create(t, p.managed, powerful)
	p.start(t)
	for name, strategyType := range map[string]workv1.UpdateStrategyType{"applied": workv1.UpdateStrategyTypeServerSideApply, "updated": workv1.UpdateStrategyTypeUpdate} {
		work := p.create(t, name, `
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: platform, namespace: NS}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: mine}
subjects: [{kind: ServiceAccount, name: executor, namespace: NS}]`, p.execute, func(w *workv1.ManifestWork) {
			update := &workv1.UpdateStrategy{Type: strategyType}
			if strategyType == workv1.UpdateStrategyTypeServerSideApply {
				update.ServerSideApply = &workv1.ServerSideApplyConfig{Force: true, IgnoreFields: []workv1.IgnoreField{
					{Condition: workv1.IgnoreFieldsConditionOnSpokePresent, JSONPaths: []string{".roleRef"}},
				}}
			}
			w.Spec.ManifestConfigs = []workv1.ManifestConfigOption{{
				ResourceIdentifier: workv1.ResourceIdentifier{Group: rbacv1.GroupName, Resource: "rolebindings", Namespace: "*", Name: "*"}, UpdateStrategy: update,
			}}
		})
		p.manifestReaches(t, work, 0, workv1.ManifestApplied, workv1.AppliedManifestFailed)
	}
	now := powerful.DeepCopy()
	if err := p.managed.Get(t.Context(), client.ObjectKeyFromObject(powerful), now); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(powerful.Subjects, now.Subjects); diff != "" || now.RoleRef != powerful.RoleRef {
		t.Errorf("%+v (-before +after)\n%s", now.RoleRef, diff)
	}
}

// testMadeUp has fields to ignore that would make another object of the manifest.
func testMadeUp(t *testing.T, p *place) {
	t.Helper()
	p.allow(t, "one", rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{"one"}, Verbs: []string{"get", "create", "update", "patch", "delete"},
	}, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create"}})
	p.start(t)
	for name, field := range map[string]workv1.IgnoreField{
		"ended": {JQPathExpressions: []string{`.nothing) | .metadata.name = "pwned" | del(.nothing`}},
		"set":   {JQPathExpressions: []string{`(.metadata.name |= "pwned")`}},
		"name":  {JSONPointers: []string{"/metadata/name"}},
		"kind":  {JSONPaths: []string{".kind"}},
	} {
		field.Condition = workv1.IgnoreFieldsConditionOnSpokePresent
		work := p.create(t, name, oneMap, p.execute, strategy(workv1.UpdateStrategy{
			Type: workv1.UpdateStrategyTypeServerSideApply, ServerSideApply: &workv1.ServerSideApplyConfig{Force: true, IgnoreFields: []workv1.IgnoreField{field}},
		}))
		p.manifestReaches(t, work, 0, workv1.ManifestApplied, workv1.AppliedManifestSSAIgnoreFieldError)
	}
	p.finds(t, "one", missing)
	p.finds(t, "pwned", missing)
}

// testLostPermissions takes the permissions of an executor away while nothing else happens:
// the work says so, and no longer reports what is in the object.
func testLostPermissions(t *testing.T, p *place) {
	t.Helper()
	every := []string{"get", "create", "update", "patch", "delete"}
	p.allow(t, "maps", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: every})
	p.config.ReviewInterval = 500 * time.Millisecond
	p.start(t)
	for name, strategyType := range map[string]workv1.UpdateStrategyType{
		"created": workv1.UpdateStrategyTypeCreateOnly, "updated": workv1.UpdateStrategyTypeUpdate, "applied": workv1.UpdateStrategyTypeServerSideApply,
	} {
		work := p.create(t, name, strings.ReplaceAll(oneMap, "name: one", "name: "+name), p.execute, func(w *workv1.ManifestWork) {
			w.Spec.ManifestConfigs = []workv1.ManifestConfigOption{{
				ResourceIdentifier: workv1.ResourceIdentifier{Resource: "configmaps", Namespace: "*", Name: "*"},
				UpdateStrategy:     &workv1.UpdateStrategy{Type: strategyType},
				FeedbackRules:      []workv1.FeedbackRule{{Type: workv1.JSONPathsType, JsonPaths: []workv1.JsonPath{{Name: "key", Path: ".data.key"}}}},
			}}
		})
		p.reaches(t, work, "Applied=True", "Available=True")
		if values := work.Status.ResourceStatus.Manifests[0].StatusFeedbacks.Values; len(values) != 1 {
			t.Errorf("%s: %+v", name, values)
		}
	}
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: p.cluster, Name: "maps"}}
	if err := p.managed.Delete(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"created", "updated", "applied"} {
		work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: p.cluster, Name: p.cluster + "-" + name}}
		c := p.manifestReaches(t, work, 0, workv1.ManifestApplied, workv1.AppliedManifestFailed)
		if !strings.Contains(c.Message, ": it may not ") { // The API server may forget one verb before another.
			t.Errorf("%s: %s", name, c.Message)
		}
		wantNoValues(t, work)
	}
}

// testHidden has works that report what is in a Secret that their executor may not read:
// in one that it may not apply, one that is invalid, and one that had no executor before.
func testHidden(t *testing.T, p *place) {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: p.cluster, Name: "one"}, StringData: map[string]string{"password": "theirs"}}
	installation.Create(t, p.managed, secret)
	p.start(t)
	const manifest = `
apiVersion: v1
kind: Secret
metadata: {name: one, namespace: NS}`
	report := func(w *workv1.ManifestWork) {
		w.Spec.ManifestConfigs = []workv1.ManifestConfigOption{{
			ResourceIdentifier: workv1.ResourceIdentifier{Resource: "secrets", Namespace: "*", Name: "*"},
			UpdateStrategy:     &workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeReadOnly},
			FeedbackRules:      []workv1.FeedbackRule{{Type: workv1.JSONPathsType, JsonPaths: []workv1.JsonPath{{Name: "password", Path: ".data.password"}}}},
		}}
	}
	for name, content := range map[string]string{"refused": manifest, "invalid": manifest + "\n---" + manifest} {
		work := p.create(t, name, content, p.execute, report)
		p.reaches(t, work, "Applied=False")
		wantNoValues(t, work)
	}
	allowed := p.create(t, "allowed", manifest, report)
	p.reaches(t, allowed, "Applied=True", "Available=True")
	if len(allowed.Status.ResourceStatus.Manifests[0].StatusFeedbacks.Values) != 1 {
		t.Errorf("without an executor: %+v", allowed.Status.ResourceStatus)
	}
	// With a second rule there would be a second value.
	p.change(t, allowed, func(w *workv1.ManifestWork) {
		p.execute(w)
		rule := &w.Spec.ManifestConfigs[0].FeedbackRules[0]
		rule.JsonPaths = append(rule.JsonPaths, workv1.JsonPath{Name: "again", Path: ".data.password"})
	})
	p.reaches(t, allowed, "Applied=False")
	if len(allowed.Status.ResourceStatus.Manifests[0].StatusFeedbacks.Values) > 1 {
		t.Errorf("with an executor: %+v", allowed.Status.ResourceStatus)
	}
}

func wantNoValues(t *testing.T, work *workv1.ManifestWork) {
	t.Helper()
	for _, m := range work.Status.ResourceStatus.Manifests {
		if values := m.StatusFeedbacks.Values; len(values) > 0 {
			t.Errorf("%s reports %+v", work.Name, values)
		}
	}
}
