package addon_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/interrupt"
)

var templates = addonv1beta1.ConfigGroupResource{Group: "addon.open-cluster-management.io", Resource: "addontemplates"}

// Manifests of templates.
const (
	agentManifest = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"agent","namespace":"open-cluster-management-agent-addon"},` +
		`"spec":{"replicas":1,"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"example.com/a","args":["{{CLUSTER_NAME}}","{{X}}"]}]}}}}`
	hookManifest = `{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"hook","namespace":"default","annotations":{"addon.open-cluster-management.io/addon-pre-delete":""}},` +
		`"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"example.com/a"}]}}}}`
	kubeClient = `{"type":"KubeClient","kubeClient":{"hubPermissions":[%s]}}`
)

func configMapManifest(name, value string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"namespace":"default"},"data":{"v":%q}}`, name, value)
}

// template makes an AddOnTemplate, or changes it.
func (e *env) template(t *testing.T, name, registration string, manifests ...string) {
	t.Helper()
	object := &unstructured.Unstructured{}
	data := fmt.Sprintf(`{"apiVersion":"addon.open-cluster-management.io/v1alpha1","kind":"AddOnTemplate","metadata":{"name":%q},"spec":{"addonName":"a","registration":[%s],"agentSpec":{"workload":{"manifests":[%s]}}}}`,
		name, registration, strings.Join(manifests, ","))
	if err := object.UnmarshalJSON([]byte(data)); err != nil {
		t.Fatal(err)
	}
	live := object.DeepCopy()
	if !e.exists(t.Context(), t, live) {
		e.create(t, object)
		return
	}
	object.SetResourceVersion(live.GetResourceVersion())
	if err := e.admin.Update(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

// templated makes the add-ons of a ClusterManagementAddOn from the template of its name.
func templated(cma *addonv1beta1.ClusterManagementAddOn) {
	cma.Spec.DefaultConfigs = append(cma.Spec.DefaultConfigs, addonv1beta1.AddOnConfig{
		ConfigGroupResource: templates, ConfigReferent: addonv1beta1.ConfigReferent{Name: cma.Name},
	})
}

func deployWork(cluster, addOn string, n int) *workv1.ManifestWork {
	return &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: names.AddOnDeployWork(addOn, n)}}
}

func (e *env) awaitWork(t *testing.T, work *workv1.ManifestWork, what string, wanted func(*workv1.ManifestWork) bool) {
	t.Helper()
	eventually(t, work.Namespace+"/"+work.Name+" "+what, func(ctx context.Context) (bool, error) {
		work.UID, work.ResourceVersion = "", ""
		return e.exists(ctx, t, work) && wanted(work), nil
	}, func() any { return work })
}

func is(*workv1.ManifestWork) bool { return true }

// says reports about a work what a work agent does: whether it was applied, and the
// values of one object's status.
func (e *env) says(t *testing.T, work *workv1.ManifestWork, status metav1.ConditionStatus, id workv1.ResourceIdentifier, values ...workv1.FeedbackValue) {
	t.Helper()
	e.get(t.Context(), t, work)
	for _, kind := range []string{workv1.WorkApplied, workv1.WorkAvailable} {
		apimeta.SetStatusCondition(&work.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: "Test", ObservedGeneration: work.Generation})
	}
	work.Status.ResourceStatus.Manifests = []workv1.ManifestCondition{{
		ResourceMeta:    workv1.ManifestResourceMeta{Group: id.Group, Resource: id.Resource, Namespace: id.Namespace, Name: id.Name},
		StatusFeedbacks: workv1.StatusFeedbackResult{Values: values}, Conditions: []metav1.Condition{},
	}}
	if err := e.admin.Status().Update(t.Context(), work); err != nil {
		t.Fatal(err)
	}
}

var agentID = workv1.ResourceIdentifier{Group: "apps", Resource: "deployments", Namespace: "open-cluster-management-agent-addon", Name: "agent"}

func replicas(ready int64) []workv1.FeedbackValue {
	value := func(name string, n int64) workv1.FeedbackValue {
		return workv1.FeedbackValue{Name: name, Value: workv1.FieldValue{Type: workv1.Integer, Integer: &n}}
	}
	return []workv1.FeedbackValue{value("Replicas", 1), value("ReadyReplicas", ready)}
}

func (e *env) awaitCondition(t *testing.T, cluster, name, kind string, status metav1.ConditionStatus, reason string) *metav1.Condition {
	t.Helper()
	var condition *metav1.Condition
	e.awaitAddOn(t, cluster, name, fmt.Sprintf("has %s %s %s", kind, status, reason), func(a *addonv1beta1.ManagedClusterAddOn) bool {
		condition = apimeta.FindStatusCondition(a.Status.Conditions, kind)
		return condition != nil && condition.Status == status && condition.Reason == reason
	})
	return condition
}

// TestTemplates deploys add-ons that are made from AddOnTemplates, each test with a
// template and clusters of its own.
func TestTemplates(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	writes := newWrites()
	e.start(t, writes.Wrap)
	for name, test := range map[string]func(*testing.T, *env, string, *interrupt.Writes){
		"deployed":    testDeployed,
		"unready":     testUnready,
		"split":       testSplit,
		"permissions": testPermissions,
		"ungrantable": testUngrantable,
		"tokens":      testTokenSubjects,
		"switched":    testSwitchedSubjects,
		"hook":        testHook,
		"steps":       testSteps,
		"others":      testOthersProgress,
		"heartbeat":   testExample,
		"namespaces":  testInstallNamespace,
		"taken":       testTakenOver,
		"shared":      testSharedByOCM,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, e, name, writes)
		})
	}
}

func testDeployed(t *testing.T, e *env, name string, writes *interrupt.Writes) {
	t.Helper()
	const cluster = "deployed-c1"
	e.cluster(t, cluster)
	e.template(t, name, fmt.Sprintf(kubeClient, ""), agentManifest)
	e.create(t, deploymentConfig("deployed", "from the config"), fleet(name, templated, func(cma *addonv1beta1.ClusterManagementAddOn) {
		cma.Spec.DefaultConfigs = append(cma.Spec.DefaultConfigs, addOnConfig(deploymentConfigs, "deployed"))
	}), addOn(cluster, name))
	work := deployWork(cluster, name, 0)
	e.awaitWork(t, work, "is made", is)
	found := addOn(cluster, name)
	e.get(t.Context(), t, found)
	if owner := metav1.GetControllerOf(work); owner == nil || owner.UID != found.UID || work.Labels[names.LabelAddOnName] != name {
		t.Errorf("metadata %+v", work.ObjectMeta)
	}
	var hashes map[string]string
	if err := json.Unmarshal([]byte(work.Annotations[workv1.ManifestConfigSpecHashAnnotationKey]), &hashes); err != nil || len(hashes) != 2 ||
		hashes["addondeploymentconfigs.addon.open-cluster-management.io/default/deployed"] != e.hash(t, "deployed") {
		t.Errorf("hashes %v, %v", hashes, err)
	}
	if got := string(work.Spec.Workload.Manifests[0].Raw); !strings.Contains(got, `"args":["deployed-c1","from the config"]`) || !strings.Contains(got, `"secretName":"deployed-hub-kubeconfig"`) {
		t.Errorf("manifest %s", got)
	}
	if got := work.Spec.ManifestConfigs; len(got) != 1 || got[0].ResourceIdentifier != agentID || got[0].FeedbackRules[0].Type != workv1.WellKnownStatusType {
		t.Errorf("options %+v", got)
	}
	e.awaitCondition(t, cluster, name, addonv1beta1.ManagedClusterAddOnRegistrationApplied, metav1.ConditionTrue, addonv1beta1.RegistrationAppliedSetPermissionApplied)
	e.says(t, work, metav1.ConditionTrue, agentID, replicas(1)...)
	e.awaitCondition(t, cluster, name, addonv1beta1.ManagedClusterAddOnManifestApplied, metav1.ConditionTrue, addonv1beta1.AddonManifestAppliedReasonManifestsApplied)
	e.awaitCondition(t, cluster, name, addonv1beta1.ManagedClusterAddOnConditionAvailable, metav1.ConditionTrue, addonv1beta1.AddonAvailableReasonProbeAvailable)
	e.awaitCondition(t, cluster, name, addonv1beta1.ManagedClusterAddOnConditionProgressing, metav1.ConditionFalse, addonv1beta1.ProgressingReasonCompleted)
	e.get(t.Context(), t, found)
	wantSubject := addonv1beta1.BaseSubject{User: names.AddOnUser(cluster, name, name+"-agent"), Groups: []string{names.AddOnClusterGroup(cluster, name), names.AddOnGroup(name)}}
	if diff := cmp.Diff([]addonv1beta1.RegistrationConfig{{Type: addonv1beta1.KubeClient, KubeClient: &addonv1beta1.KubeClientConfig{
		Subject: addonv1beta1.KubeClientSubject{BaseSubject: wantSubject},
	}}}, found.Status.Registrations); diff != "" {
		t.Errorf("registrations (-want +got):\n%s", diff)
	}
	if s := found.Status; s.Namespace != names.AddOnNamespace || s.HealthCheck.Mode != addonv1beta1.HealthCheckModeCustomized || len(s.SupportedConfigs) != 2 {
		t.Errorf("status %+v", s)
	}
	for _, r := range found.Status.ConfigReferences {
		if r.LastAppliedConfig == nil || *r.LastAppliedConfig != *r.DesiredConfig {
			t.Errorf("reference %+v is not applied", r)
		}
	}
	e.testDrift(t, name, work, writes)
}

// testDrift: what others change about a work comes back, and nothing is written twice.
func (e *env) testDrift(t *testing.T, name string, work *workv1.ManifestWork, writes *interrupt.Writes) {
	t.Helper()
	if got := slices.DeleteFunc(slices.Compact(writes.About(work.Namespace)), func(w string) bool { return !strings.Contains(w, "manifestworks") }); len(got) != 1 {
		t.Errorf("%d writes of works:\n%s", len(got), strings.Join(got, "\n"))
	}
	e.merge(t, work, `{"metadata":{"labels":{"mine":"stays"},"ownerReferences":null},"spec":{"workload":{"manifests":[`+configMapManifest("x", "1")+`]},"deleteOption":{"propagationPolicy":"Orphan"}}}`)
	e.awaitWork(t, work, "is repaired", func(w *workv1.ManifestWork) bool {
		return strings.Contains(string(w.Spec.Workload.Manifests[0].Raw), "Deployment") && w.Spec.DeleteOption == nil && len(w.OwnerReferences) == 1 && w.Labels["mine"] == "stays"
	})
	before := work.UID
	e.delete(t, work)
	e.awaitWork(t, work, "is made again", func(w *workv1.ManifestWork) bool { return w.UID != before })
	// A new version of the template is deployed, and progresses.
	e.template(t, name, "", agentManifest, configMapManifest("m", "1"))
	e.awaitWork(t, work, "has the new manifest", func(w *workv1.ManifestWork) bool { return len(w.Spec.Workload.Manifests) == 2 })
	e.awaitCondition(t, work.Namespace, name, addonv1beta1.ManagedClusterAddOnRegistrationApplied, metav1.ConditionTrue, addonv1beta1.RegistrationAppliedNilRegistration)
	e.awaitCondition(t, work.Namespace, name, addonv1beta1.ManagedClusterAddOnConditionProgressing, metav1.ConditionTrue, addonv1beta1.ProgressingReasonProgressing)
	e.says(t, work, metav1.ConditionFalse, agentID)
	e.awaitCondition(t, work.Namespace, name, addonv1beta1.ManagedClusterAddOnManifestApplied, metav1.ConditionFalse, addonv1beta1.AddonManifestAppliedReasonManifestsApplyFailed)
	e.awaitCondition(t, work.Namespace, name, addonv1beta1.ManagedClusterAddOnConditionProgressing, metav1.ConditionFalse, addonv1beta1.ProgressingReasonFailed)
}

func testUnready(t *testing.T, e *env, name string, _ *interrupt.Writes) {
	t.Helper()
	const cluster = "unready-c1"
	e.cluster(t, cluster)
	e.template(t, name, "", agentManifest)
	e.create(t, fleet(name, templated), addOn(cluster, name))
	work := deployWork(cluster, name, 0)
	e.awaitWork(t, work, "is made", is)
	e.says(t, work, metav1.ConditionTrue, agentID)
	e.awaitCondition(t, cluster, name, addonv1beta1.ManagedClusterAddOnConditionAvailable, metav1.ConditionUnknown, addonv1beta1.AddonAvailableReasonNoProbeResult)
	e.says(t, work, metav1.ConditionTrue, agentID, replicas(0)...)
	e.awaitCondition(t, cluster, name, addonv1beta1.ManagedClusterAddOnConditionAvailable, metav1.ConditionFalse, addonv1beta1.AddonAvailableReasonProbeUnavailable)
	e.says(t, work, metav1.ConditionTrue, agentID, replicas(1)...)
	e.awaitCondition(t, cluster, name, addonv1beta1.ManagedClusterAddOnConditionAvailable, metav1.ConditionTrue, addonv1beta1.AddonAvailableReasonProbeAvailable)
}

// testSplit: what is too large for one work is in several. A manifest stays in its work;
// one that has to move leaves it after the work agent has applied the other work.
func testSplit(t *testing.T, e *env, name string, _ *interrupt.Writes) {
	t.Helper()
	const cluster = "split-c1"
	e.cluster(t, cluster)
	first, second := deployWork(cluster, name, 0), deployWork(cluster, name, 1)
	kib := func(n int) string { return strings.Repeat("x", n<<10) }
	e.template(t, name, "", configMapManifest("m1", kib(300)), configMapManifest("m2", kib(300)))
	e.create(t, fleet(name, templated), addOn(cluster, name))
	e.awaitWork(t, second, "is made", is)
	e.template(t, name, "", configMapManifest("m1", kib(300)), configMapManifest("m2", "small"), configMapManifest("m3", "small"))
	e.awaitWork(t, first, "has the new manifest", objects("m1", "m3"))
	e.awaitWork(t, second, "keeps its manifest", objects("m2"))
	e.template(t, name, "", configMapManifest("m1", kib(480)), configMapManifest("m2", "small"), configMapManifest("m3", kib(50)))
	e.awaitWork(t, second, "takes a manifest over", objects("m2", "m3"))
	e.says(t, second, metav1.ConditionFalse, workv1.ResourceIdentifier{})
	e.awaitCondition(t, cluster, name, addonv1beta1.ManagedClusterAddOnManifestApplied, metav1.ConditionFalse, addonv1beta1.AddonManifestAppliedReasonManifestsApplyFailed)
	if e.get(t.Context(), t, first); !objects("m1", "m3")(first) {
		t.Error("the first work lost a manifest before the second was applied")
	}
	e.says(t, second, metav1.ConditionTrue, workv1.ResourceIdentifier{})
	e.awaitWork(t, first, "loses the manifest", objects("m1"))
	e.template(t, name, "", configMapManifest("m1", "small"))
	eventually(t, "the second work is gone", func(ctx context.Context) (bool, error) {
		return !e.exists(ctx, t, deployWork(cluster, name, 1)), nil
	})
}

// objects reports whether a work has exactly these ConfigMaps.
func objects(names ...string) func(*workv1.ManifestWork) bool {
	return func(w *workv1.ManifestWork) bool {
		return slices.EqualFunc(w.Spec.Workload.Manifests, names, func(m workv1.Manifest, name string) bool {
			return strings.Contains(string(m.Raw), `"name":"`+name+`"`)
		})
	}
}

func (e *env) binding(t *testing.T, namespace, name string) *rbacv1.RoleBinding {
	t.Helper()
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	eventually(t, "RoleBinding "+namespace+"/"+name, func(ctx context.Context) (bool, error) { return e.exists(ctx, t, binding), nil })
	return binding
}

// letBind lets the add-on manager bind a ClusterRole for add-ons, in their cluster's
// namespace and in the namespace default.
func (e *env) letBind(t *testing.T, role string, addOns ...string) {
	t.Helper()
	e.permit(t, "", "bind-"+role, rbacv1.PolicyRule{
		APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterroles"}, ResourceNames: []string{role}, Verbs: []string{"bind"},
	})
	for _, addOn := range addOns {
		e.grant(t, "", role, addOn)
		e.grant(t, "default", role, addOn)
	}
}

// grant is an administrator's, of a ClusterRole to an add-on: in a namespace, or with none in
// that of its cluster.
func (e *env) grant(t *testing.T, namespace, role, addOn string) {
	t.Helper()
	resource := "hubpermissions/currentcluster"
	if namespace != "" {
		resource = "hubpermissions/singlenamespace"
	}
	e.permit(t, namespace, "grant-"+role+"-"+addOn, rbacv1.PolicyRule{
		APIGroups: []string{addonv1beta1.GroupName}, Resources: []string{resource},
		ResourceNames: []string{addOn + ":clusterrole:" + role}, Verbs: []string{"bind"},
	})
}

// permit gives the add-on manager a permission, in a namespace or with none everywhere.
func (e *env) permit(t *testing.T, namespace, name string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	meta := metav1.ObjectMeta{Namespace: namespace, Name: name}
	home, account, _ := names.ParseServiceAccountUser(e.user())
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: home, Name: account}}
	if namespace == "" {
		e.create(t, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}, &rbacv1.ClusterRoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}, Subjects: subjects,
		})
		return
	}
	e.create(t, &rbacv1.Role{ObjectMeta: meta, Rules: rules}, &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}, Subjects: subjects,
	})
}

// bound returns the RoleBindings of a ClusterRole.
func (e *env) bound(t *testing.T, role string) []string {
	t.Helper()
	var list rbacv1.RoleBindingList
	if err := e.admin.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	var found []string
	for i := range list.Items {
		if list.Items[i].RoleRef.Name == role {
			found = append(found, list.Items[i].Namespace+"/"+list.Items[i].Name)
		}
	}
	return found
}

// testPermissions: the roles of a template are bound to the add-on on one cluster, once
// somebody lets the add-on manager bind them, and go with it.
func testPermissions(t *testing.T, e *env, name string, _ *interrupt.Writes) {
	t.Helper()
	const cluster, role = "permissions-c1", "permissions-role"
	e.cluster(t, cluster)
	e.create(t, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: role}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}},
	}})
	current := `{"type":"CurrentCluster","currentCluster":{"clusterRoleName":"permissions-role"}}`
	single := `{"type":"SingleNamespace","singleNamespace":{"namespace":"default","roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"permissions-role"}}}`
	e.template(t, name, fmt.Sprintf(kubeClient, current+","+single), agentManifest)
	e.create(t, fleet(name, templated), addOn(cluster, name))
	refused := e.awaitCondition(t, cluster, name, addonv1beta1.ManagedClusterAddOnRegistrationApplied, metav1.ConditionFalse, addonv1beta1.RegistrationAppliedSetPermissionFailed)
	for _, part := range []string{
		`let its ServiceAccount addon-manager-controller-sa bind clusterroles.rbac.authorization.k8s.io "permissions-role" in namespace permissions-c1, ` +
			`and bind hubpermissions/currentcluster.addon.open-cluster-management.io "permissions:clusterrole:permissions-role"`,
		`bind hubpermissions/singlenamespace.addon.open-cluster-management.io "permissions:clusterrole:permissions-role" in namespace default`,
	} {
		if !strings.Contains(refused.Message, part) {
			t.Errorf("no %s in %q", part, refused.Message)
		}
	}
	e.awaitWork(t, deployWork(cluster, name, 0), "is made without waiting", is)
	if got := e.bound(t, role); len(got) > 0 {
		t.Errorf("a role that nobody lets the add-on manager bind is bound by %v", got)
	}
	e.grant(t, "", role, "another")
	e.letBind(t, role, name)
	e.awaitCondition(t, cluster, name, addonv1beta1.ManagedClusterAddOnRegistrationApplied, metav1.ConditionTrue, addonv1beta1.RegistrationAppliedSetPermissionApplied)
	subject := func(kind, name string) rbacv1.Subject {
		return rbacv1.Subject{Kind: kind, APIGroup: rbacv1.GroupName, Name: name}
	}
	want := []rbacv1.Subject{subject(rbacv1.UserKind, names.AddOnUser(cluster, name, name+"-agent")), subject(rbacv1.GroupKind, names.AddOnClusterGroup(cluster, name))}
	for _, binding := range []*rbacv1.RoleBinding{
		e.binding(t, cluster, "open-cluster-management:permissions:clusterrole:agent"),
		e.binding(t, "default", "open-cluster-management:permissions:clusterrole:agent:permissions-c1"),
	} {
		_, labelled := binding.Labels["open-cluster-management.io/addon-template-name"]
		if diff := cmp.Diff(want, binding.Subjects); diff != "" || binding.RoleRef.Name != role || !labelled {
			t.Errorf("%s: %v, subjects (-want +got):\n%s", binding.Namespace, binding.RoleRef, diff)
		}
		e.merge(t, binding, `{"subjects":[]}`)
		eventually(t, "the subjects come back", func(ctx context.Context) (bool, error) {
			e.get(ctx, t, binding)
			return cmp.Equal(want, binding.Subjects), nil
		})
	}
	e.delete(t, addOn(cluster, name))
	eventually(t, "the bindings are gone", func(ctx context.Context) (bool, error) {
		var list rbacv1.RoleBindingList
		if err := e.admin.List(ctx, &list, client.MatchingLabels{names.LabelAddOnName: name}); err != nil {
			return false, err
		}
		return len(list.Items) == 0, nil
	})
}

// testUngrantable: an administrator is not told to grant what admission denies anyway.
func testUngrantable(t *testing.T, e *env, name string, _ *interrupt.Writes) {
	t.Helper()
	const cluster, other = "ungrantable-c1", "ungrantable-c2"
	e.cluster(t, cluster)
	e.cluster(t, other)
	permission := func(namespace string) string {
		return `{"type":"SingleNamespace","singleNamespace":{"namespace":"` + namespace + `","roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"view"}}}`
	}
	e.template(t, name, fmt.Sprintf(kubeClient, permission("kube-system")+","+permission(other)), agentManifest)
	e.create(t, fleet(name, templated), addOn(cluster, name))
	refused := e.awaitCondition(t, cluster, name, addonv1beta1.ManagedClusterAddOnRegistrationApplied, metav1.ConditionFalse, addonv1beta1.RegistrationAppliedSetPermissionFailed)
	for _, namespace := range []string{"kube-system", other} {
		if !strings.Contains(refused.Message, "no permission in namespace "+namespace+",") || strings.Contains(refused.Message, "let its ServiceAccount") {
			t.Errorf("%s: %s", namespace, refused.Message)
		}
	}
}

// testTokenSubjects: of an add-on that registers with tokens, only a ServiceAccount of
// the add-on in its own cluster's namespace is bound.
func testTokenSubjects(t *testing.T, e *env, name string, _ *interrupt.Writes) {
	t.Helper()
	const cluster, role = "tokens-c1", "tokens-role"
	e.cluster(t, cluster)
	e.create(t, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: role}})
	e.letBind(t, role, name)
	e.template(t, name, fmt.Sprintf(kubeClient, `{"type":"CurrentCluster","currentCluster":{"clusterRoleName":"tokens-role"}}`), agentManifest)
	e.create(t, fleet(name, templated), addOn(cluster, name))
	binding := e.binding(t, cluster, "open-cluster-management:tokens:clusterrole:agent")
	token := func(user string) {
		e.status(t, cluster, name, fmt.Sprintf(`{"registrations":[{"type":"kubeClient","kubeClient":{"driver":"token","subject":{"user":%q}}}]}`, user))
	}
	token("system:serviceaccount:kube-system:" + name + "-agent")
	e.awaitCondition(t, cluster, name, addonv1beta1.ManagedClusterAddOnRegistrationApplied, metav1.ConditionFalse, names.ReasonPermissionConfigPending)
	subjects := func(want ...string) {
		eventually(t, fmt.Sprintf("%v is bound", want), func(ctx context.Context) (bool, error) {
			if !e.exists(ctx, t, binding) {
				return false, nil
			}
			var got []string
			for _, s := range binding.Subjects {
				got = append(got, s.Name)
			}
			return slices.Equal(want, got), nil
		}, func() any { return binding.Subjects })
	}
	subjects()
	account := names.ServiceAccountUser(cluster, cluster+"-"+name+"-agent")
	token(account)
	subjects(account)
	e.awaitCondition(t, cluster, name, addonv1beta1.ManagedClusterAddOnRegistrationApplied, metav1.ConditionTrue, addonv1beta1.RegistrationAppliedSetPermissionApplied)
}

// testSwitchedSubjects: an add-on whose driver changes stays who it was until its Pods can
// have the new credential.
func testSwitchedSubjects(t *testing.T, e *env, name string, _ *interrupt.Writes) {
	t.Helper()
	const cluster, role = "switched-c1", "switched-role"
	e.cluster(t, cluster)
	e.create(t, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: role}})
	e.letBind(t, role, name)
	e.template(t, name, fmt.Sprintf(kubeClient, `{"type":"CurrentCluster","currentCluster":{"clusterRoleName":"switched-role"}}`), agentManifest)
	e.create(t, fleet(name, templated), addOn(cluster, name))
	e.binding(t, cluster, "open-cluster-management:switched:clusterrole:agent")
	user, group, account := names.AddOnUser(cluster, name, name+"-agent"), names.AddOnClusterGroup(cluster, name), ownUser(cluster, name)
	bound := func(want ...string) {
		t.Helper()
		eventually(t, fmt.Sprintf("%v is bound", want), func(ctx context.Context) (bool, error) {
			binding := e.binding(t, cluster, "open-cluster-management:switched:clusterrole:agent")
			e.get(ctx, t, binding)
			var got []string
			for _, s := range binding.Subjects {
				got = append(got, s.Name)
			}
			return slices.Equal(want, got), nil
		})
	}
	declare := func(authType driver.AuthType, user string) {
		e.status(t, cluster, name, fmt.Sprintf(`{"registrations":[{"type":"kubeClient","kubeClient":{"driver":%q,"subject":{"user":%q}}}]}`, authType, user))
	}
	bound(user, group)
	declare(driver.Token, user) // The agent's first write.
	declare(driver.Token, account)
	bound(account, user, group)
	const refreshed, rotated = names.ConditionTokenRefreshed, names.ConditionCertificateRotated
	e.setConditionSince(t, cluster, name, refreshed, "True", driver.SwitchGrace-2*time.Second)
	bound(account)
	declare(driver.CSR, user)
	bound(user, group, account)
	// Of others, nothing stays.
	binding := e.binding(t, cluster, "open-cluster-management:switched:clusterrole:agent")
	e.merge(t, binding, `{"subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"someone"}]}`)
	bound(user, group)
	e.merge(t, binding, fmt.Sprintf(`{"subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":%q}]}`, account))
	bound(user, group, account)
	e.setCondition(t, cluster, name, rotated, "True")
	bound(user, group)
}

// testHook: what has to run before an add-on is deleted runs, and the add-on stays until
// it has succeeded.
func testHook(t *testing.T, e *env, name string, _ *interrupt.Writes) {
	t.Helper()
	const cluster = "hook-c1"
	e.cluster(t, cluster)
	e.template(t, name, "", agentManifest, hookManifest)
	e.create(t, fleet(name, templated), addOn(cluster, name))
	work := deployWork(cluster, name, 0)
	e.awaitWork(t, work, "deploys the agent only", func(w *workv1.ManifestWork) bool { return len(w.Spec.Workload.Manifests) == 1 })
	e.delete(t, addOn(cluster, name))
	hook := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "addon-hook-pre-delete"}}
	e.awaitWork(t, hook, "is made", is)
	e.awaitCondition(t, cluster, name, addonv1beta1.ManagedClusterAddOnHookManifestCompleted, metav1.ConditionFalse, names.ReasonHookNotCompleted)
	e.unheard(t, cluster)
	eventually(t, "the add-on says what can be done", func(ctx context.Context) (bool, error) {
		found := addOn(cluster, name)
		e.get(ctx, t, found)
		c := apimeta.FindStatusCondition(found.Status.Conditions, addonv1beta1.ManagedClusterAddOnHookManifestCompleted)
		return strings.Contains(c.Message, "runs when the cluster is back; to delete the add-on without it, remove the finalizer "+addonv1beta1.AddonPreDeleteHookFinalizer), nil
	})
	e.says(t, hook, metav1.ConditionTrue, hookID)
	if !e.exists(t.Context(), t, addOn(cluster, name)) || !e.exists(t.Context(), t, work) {
		t.Error("the add-on did not wait")
	}
	e.says(t, hook, metav1.ConditionTrue, hookID, succeeded())
	eventually(t, "the add-on and its works are gone", func(ctx context.Context) (bool, error) {
		return !e.exists(ctx, t, addOn(cluster, name)) && !e.exists(ctx, t, work) && !e.exists(ctx, t, hook), nil
	})
}

// hookID identifies the Job of hookManifest.
var hookID = workv1.ResourceIdentifier{Group: "batch", Resource: "jobs", Namespace: "default", Name: "hook"}

func succeeded() workv1.FeedbackValue {
	return workv1.FeedbackValue{Name: "JobComplete", Value: workv1.FieldValue{Type: workv1.String, String: new("True")}}
}

// unheard makes a cluster one that the hub does not hear from.
func (e *env) unheard(t *testing.T, name string) {
	t.Helper()
	cluster := managedCluster(name)
	e.get(t.Context(), t, cluster)
	apimeta.SetStatusCondition(&cluster.Status.Conditions, metav1.Condition{
		Type: clusterv1.ManagedClusterConditionAvailable, Status: metav1.ConditionUnknown, Reason: "Test",
	})
	if err := e.admin.Status().Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
}

// testSteps: a rollout gives clusters the template, and a new version of it, one after
// the other, and stays where the work agent fails.
func testSteps(t *testing.T, e *env, name string, _ *interrupt.Writes) {
	t.Helper()
	clusters := []string{"steps-c1", "steps-c2", "steps-c3"}
	for _, cluster := range clusters {
		e.cluster(t, cluster)
	}
	e.template(t, name, "", configMapManifest("m", "1"))
	e.decide(t, name, clusters...)
	e.create(t, fleet(name, templated, placed(name), func(cma *addonv1beta1.ClusterManagementAddOn) {
		cma.Spec.InstallStrategy.Placements[0].RolloutStrategy = clusterv1alpha1.RolloutStrategy{
			Type: clusterv1alpha1.Progressive, Progressive: &clusterv1alpha1.RolloutProgressive{MaxConcurrency: intstr.FromInt32(1)},
		}
	}))
	e.awaitInstalled(t, name, clusters...)
	for _, version := range []string{"1", "2"} {
		for i, cluster := range clusters {
			work := deployWork(cluster, name, 0)
			e.awaitWork(t, work, "has version "+version, func(w *workv1.ManifestWork) bool {
				return strings.Contains(string(w.Spec.Workload.Manifests[0].Raw), `"v":"`+version+`"`)
			})
			for _, later := range clusters[i+1:] {
				e.awaitCondition(t, later, name, addonv1beta1.ManagedClusterAddOnConditionProgressing, metav1.ConditionFalse, addonv1beta1.ProgressingReasonWaitingForCanary)
				if work := deployWork(later, name, 0); e.exists(t.Context(), t, work) && strings.Contains(string(work.Spec.Workload.Manifests[0].Raw), `"v":"`+version+`"`) {
					t.Errorf("%s has version %s before %s has applied it", later, version, cluster)
				}
			}
			e.says(t, work, metav1.ConditionTrue, workv1.ResourceIdentifier{})
		}
		e.awaitProgression(t, name, addonv1beta1.ProgressingReasonCompleted)
		if version == "1" {
			e.template(t, name, "", configMapManifest("m", "2"))
		}
	}
	e.template(t, name, "", configMapManifest("m", "3"))
	work := deployWork(clusters[0], name, 0)
	e.awaitWork(t, work, "has version 3", func(w *workv1.ManifestWork) bool {
		return strings.Contains(string(w.Spec.Workload.Manifests[0].Raw), `"v":"3"`)
	})
	e.says(t, work, metav1.ConditionFalse, workv1.ResourceIdentifier{})
	message := e.awaitProgression(t, name, addonv1beta1.ProgressingReasonProgressing, "1 failed")
	if !strings.HasPrefix(message, "0 of 3 clusters") {
		t.Errorf("message %q", message)
	}
	e.awaitCondition(t, clusters[1], name, addonv1beta1.ManagedClusterAddOnConditionProgressing, metav1.ConditionFalse, addonv1beta1.ProgressingReasonWaitingForCanary)
	e.says(t, work, metav1.ConditionTrue, workv1.ResourceIdentifier{})
	e.awaitWork(t, deployWork(clusters[1], name, 0), "has version 3 after the failure is over", func(w *workv1.ManifestWork) bool {
		return strings.Contains(string(w.Spec.Workload.Manifests[0].Raw), `"v":"3"`)
	})
}

func (e *env) awaitProgression(t *testing.T, name, reason string, parts ...string) string {
	t.Helper()
	var last *metav1.Condition
	eventually(t, name+" is "+reason, func(ctx context.Context) (bool, error) {
		cma := fleet(name)
		e.get(ctx, t, cma)
		if len(cma.Status.InstallProgressions) != 1 {
			return false, nil
		}
		last = apimeta.FindStatusCondition(cma.Status.InstallProgressions[0].Conditions, addonv1beta1.ManagedClusterAddOnConditionProgressing)
		return last != nil && last.Reason == reason && !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(last.Message, p) }), nil
	}, func() any { return last })
	return last.Message
}

// testOthersProgress: how far the works of an add-on that has a manager of its own were
// applied is reported by their annotation.
func testOthersProgress(t *testing.T, e *env, name string, _ *interrupt.Writes) {
	t.Helper()
	const cluster = "others-c1"
	e.cluster(t, cluster)
	e.create(t, deploymentConfig("others", "1"), fleet(name, func(cma *addonv1beta1.ClusterManagementAddOn) {
		cma.Spec.DefaultConfigs = []addonv1beta1.AddOnConfig{addOnConfig(deploymentConfigs, "others")}
	}), addOn(cluster, name))
	e.awaitCondition(t, cluster, name, addonv1beta1.ManagedClusterAddOnConditionProgressing, metav1.ConditionFalse, names.ReasonWaitingForManifestApplied)
	work := deployWork(cluster, name, 0)
	work.Labels = map[string]string{names.LabelAddOnName: name}
	work.Annotations = map[string]string{workv1.ManifestConfigSpecHashAnnotationKey: fmt.Sprintf(
		`{"addondeploymentconfigs.addon.open-cluster-management.io/default/others":%q}`, e.hash(t, "others"))}
	work.Spec.Workload.Manifests = []workv1.Manifest{{}}
	work.Spec.Workload.Manifests[0].Raw = []byte(configMapManifest("m", "1"))
	e.create(t, work)
	e.setCondition(t, cluster, name, addonv1beta1.ManagedClusterAddOnManifestApplied, "True")
	e.awaitCondition(t, cluster, name, addonv1beta1.ManagedClusterAddOnConditionProgressing, metav1.ConditionTrue, addonv1beta1.ProgressingReasonProgressing)
	e.says(t, work, metav1.ConditionTrue, workv1.ResourceIdentifier{})
	e.awaitCondition(t, cluster, name, addonv1beta1.ManagedClusterAddOnConditionProgressing, metav1.ConditionFalse, addonv1beta1.ProgressingReasonCompleted)
}

// testExample: the template of the sample add-on is all that the hub needs.
func testExample(t *testing.T, e *env, name string, _ *interrupt.Writes) {
	t.Helper()
	const cluster = "heartbeat-c1"
	file, err := os.Open("../../examples/heartbeat/deploy/template.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	for decoder := yaml.NewYAMLOrJSONDecoder(file, 4096); ; {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(object); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		e.create(t, object)
	}
	e.cluster(t, cluster)
	e.create(t, addOn(cluster, name))
	e.awaitCondition(t, cluster, name, addonv1beta1.ManagedClusterAddOnRegistrationApplied, metav1.ConditionTrue, addonv1beta1.RegistrationAppliedSetPermissionApplied)
	e.binding(t, cluster, "open-cluster-management:heartbeat:clusterrole:agent")
	work := deployWork(cluster, name, 0)
	e.awaitWork(t, work, "is made", func(w *workv1.ManifestWork) bool { return len(w.Spec.Workload.Manifests) == 4 })
	if got := string(work.Spec.Workload.Manifests[3].Raw); !strings.Contains(got, "--cluster-name=heartbeat-c1") || strings.Contains(got, "{{") {
		t.Errorf("manifest %s", got)
	}
}
