package addon_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/internal/addonconfig"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/interrupt"
)

// workloadIn is the manifest of a workload in a namespace.
func workloadIn(kind, namespace string) string {
	return fmt.Sprintf(`{"apiVersion":"apps/v1","kind":%q,"metadata":{"name":"agent","namespace":%q},"spec":{"selector":{"matchLabels":{"a":"b"}},`+
		`"template":{"metadata":{"labels":{"a":"b"}},"spec":{"initContainers":[{"name":"i","image":"example.com/a"}],"containers":[{"name":"c","image":"example.com/a","args":["{{CLUSTER_NAME}}"]}]}}}}`, kind, namespace)
}

// testInstallNamespace: the credentials of an add-on are where its Pods are, which only the
// AddOnDeploymentConfig changes.
func testInstallNamespace(t *testing.T, e *env, name string, _ *interrupt.Writes) {
	t.Helper()
	const cluster = "namespaces-c1"
	e.cluster(t, cluster)
	installed := addOn(cluster, name)
	installed.Annotations = map[string]string{names.AnnotationInstallNamespace: "annotated"}
	e.template(t, name, fmt.Sprintf(kubeClient, ""), workloadIn("DaemonSet", "of-the-daemonset"))
	e.create(t, fleet(name, templated), installed)
	expect := func(want string) {
		t.Helper()
		e.awaitAddOn(t, cluster, name, "is in "+want, func(a *addonv1beta1.ManagedClusterAddOn) bool { return a.Status.Namespace == want })
	}
	expect("of-the-daemonset")
	e.template(t, name, fmt.Sprintf(kubeClient, ""), workloadIn("DaemonSet", "of-the-daemonset"), workloadIn("Deployment", "own"), workloadIn("Deployment", "second"))
	expect("own")
	e.template(t, name, fmt.Sprintf(kubeClient, ""), configMapManifest("m", "1"))
	expect(names.AddOnNamespace)
	config := deploymentConfig(name, "x")
	config.Spec.AgentInstallNamespace = "moved"
	e.create(t, config)
	e.merge(t, installed, fmt.Sprintf(`{"spec":{"configs":[{"group":"addon.open-cluster-management.io","resource":"addondeploymentconfigs","namespace":"default","name":%q}]}}`, name))
	expect("moved")
}

// ocm is what OCM's add-on manager has made of an add-on in the namespace own, with the
// permission to bind a role in its cluster's namespace.
type ocm struct {
	work    *workv1.ManifestWork
	binding *rbacv1.RoleBinding
	status  addonv1beta1.ManagedClusterAddOnStatus
}

// madeByOCM makes an add-on as OCM does. Another manager has it until takeOver is called.
func (e *env) madeByOCM(t *testing.T, cluster, name, role string) (made ocm, takeOver func()) {
	t.Helper()
	e.cluster(t, cluster)
	permission := fmt.Sprintf(`{"type":"CurrentCluster","currentCluster":{"clusterRoleName":%q}}`, role)
	e.template(t, name, fmt.Sprintf(kubeClient, permission), workloadIn("Deployment", "own"))
	cma, installed := fleet(name, templated), addOn(cluster, name)
	cma.Annotations = map[string]string{names.AnnotationAddOnLifecycle: "self"}
	e.create(t, cma, installed)
	template := addonconfig.Read(addonconfig.Templates())
	if err := e.admin.Get(t.Context(), client.ObjectKey{Name: name}, template); err != nil {
		t.Fatal(err)
	}
	hash, err := addonconfig.Hash(template)
	if err != nil {
		t.Fatal(err)
	}
	user := addonv1beta1.BaseSubject{
		User:   "system:open-cluster-management:cluster:" + cluster + ":addon:" + name + ":agent:" + name + "-agent",
		Groups: []string{names.AddOnClusterGroup(cluster, name), names.AddOnGroup(name)},
	}
	made.status = addonv1beta1.ManagedClusterAddOnStatus{
		Namespace: "own", SupportedConfigs: []addonv1beta1.ConfigGroupResource{templates, deploymentConfigs},
		HealthCheck: addonv1beta1.HealthCheck{Mode: addonv1beta1.HealthCheckModeCustomized},
		Registrations: []addonv1beta1.RegistrationConfig{{Type: addonv1beta1.KubeClient, KubeClient: &addonv1beta1.KubeClientConfig{
			Driver: "csr", Subject: addonv1beta1.KubeClientSubject{BaseSubject: user},
		}}},
		ConfigReferences: []addonv1beta1.ConfigReference{{
			ConfigGroupResource: templates, LastObservedGeneration: 1,
			DesiredConfig: &addonv1beta1.ConfigSpecHash{ConfigReferent: addonv1beta1.ConfigReferent{Name: name}, SpecHash: hash},
		}},
	}
	e.set(t, installed, made.status)
	made.work, made.binding = workOfOCM(installed, hash), bindingOfOCM(installed, role, user)
	e.create(t, made.work, made.binding)
	return made, func() {
		e.merge(t, fleet(name), `{"metadata":{"annotations":{"addon.open-cluster-management.io/lifecycle":"addon-manager"}}}`)
	}
}

func (e *env) set(t *testing.T, installed *addonv1beta1.ManagedClusterAddOn, status addonv1beta1.ManagedClusterAddOnStatus) {
	t.Helper()
	data, err := json.Marshal(status)
	if err != nil {
		t.Fatal(err)
	}
	e.status(t, installed.Namespace, installed.Name, string(data))
}

func ownerIs(installed *addonv1beta1.ManagedClusterAddOn) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "addon.open-cluster-management.io/v1beta1", Kind: "ManagedClusterAddOn", Name: installed.Name, UID: installed.UID}
}

// workOfOCM has what Go types of earlier releases add to the manifests.
func workOfOCM(installed *addonv1beta1.ManagedClusterAddOn, hash string) *workv1.ManifestWork {
	manifest := fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"agent","namespace":"own","creationTimestamp":null},`+
		`"spec":{"selector":{"matchLabels":{"a":"b"}},"strategy":{},"template":{"metadata":{"creationTimestamp":null,"labels":{"a":"b"}},"spec":{`+
		`"volumes":[{"name":"hub-kubeconfig","secret":{"secretName":"%[1]s-hub-kubeconfig"}}],"initContainers":[{"name":"i","image":"example.com/a","resources":{}}],`+
		`"containers":[{"name":"c","image":"example.com/a","args":[%[2]q],"resources":{},"env":[{"name":"HUB_KUBECONFIG","value":"/managed/hub-kubeconfig/kubeconfig"},{"name":"CLUSTER_NAME","value":%[2]q}],`+
		`"volumeMounts":[{"name":"hub-kubeconfig","mountPath":"/managed/hub-kubeconfig"}]}]}}},"status":{}}`, installed.Name, installed.Namespace)
	owner := ownerIs(installed)
	owner.Controller, owner.BlockOwnerDeletion = new(true), new(true)
	work := deployWork(installed.Namespace, installed.Name, 0)
	work.Labels = map[string]string{names.LabelAddOnName: installed.Name}
	work.Annotations = map[string]string{workv1.ManifestConfigSpecHashAnnotationKey: fmt.Sprintf(`{"addontemplates.addon.open-cluster-management.io//%s":%q}`, installed.Name, hash)}
	work.OwnerReferences = []metav1.OwnerReference{owner}
	work.Spec.Workload.Manifests = []workv1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(manifest)}}}
	work.Spec.ManifestConfigs = []workv1.ManifestConfigOption{{
		ResourceIdentifier: workv1.ResourceIdentifier{Group: "apps", Resource: "deployments", Namespace: "own", Name: "agent"},
		FeedbackRules:      []workv1.FeedbackRule{{Type: workv1.WellKnownStatusType}},
	}}
	return work
}

func bindingOfOCM(installed *addonv1beta1.ManagedClusterAddOn, role string, user addonv1beta1.BaseSubject) *rbacv1.RoleBinding {
	subject := func(kind, name string) rbacv1.Subject {
		return rbacv1.Subject{Kind: kind, APIGroup: rbacv1.GroupName, Name: name}
	}
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: installed.Namespace, Name: "open-cluster-management:" + installed.Name + ":clusterrole:agent",
			Labels:          map[string]string{names.LabelAddOnName: installed.Name, "open-cluster-management.io/addon-template-name": ""},
			OwnerReferences: []metav1.OwnerReference{ownerIs(installed)},
		},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects: []rbacv1.Subject{subject("User", user.User), subject("Group", user.Groups[0]), subject("Group", user.Groups[1])},
	}
}

// testTakenOver: what OCM made of an add-on stays as it is, so that nothing of it restarts
// or gets another credential. Its permissions are adopted once they are granted.
func testTakenOver(t *testing.T, e *env, name string, writes *interrupt.Writes) {
	t.Helper()
	const cluster, role = "taken-c1", "taken-role"
	e.create(t, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: role}})
	made, takeOver := e.madeByOCM(t, cluster, name, role)
	takeOver()
	refused := e.awaitCondition(t, cluster, name, addonv1beta1.ManagedClusterAddOnRegistrationApplied, metav1.ConditionFalse, addonv1beta1.RegistrationAppliedSetPermissionFailed)
	if grant := `"` + name + ":clusterrole:" + role + `"`; !strings.Contains(refused.Message, grant) {
		t.Errorf("no grant %s in %q", grant, refused.Message)
	}
	binding := e.binding(t, cluster, made.binding.Name)
	if diff := cmp.Diff(made.binding, binding); diff != "" {
		t.Errorf("the RoleBinding before a grant (-want +got):\n%s", diff)
	}
	e.letBind(t, role, name)
	e.awaitCondition(t, cluster, name, addonv1beta1.ManagedClusterAddOnRegistrationApplied, metav1.ConditionTrue, addonv1beta1.RegistrationAppliedSetPermissionApplied)
	e.get(t.Context(), t, binding)
	// The group of the add-on on all clusters goes.
	if diff := cmp.Diff(made.binding.Subjects[:2], binding.Subjects); diff != "" || binding.UID != made.binding.UID || binding.Labels[names.LabelAddOnCluster] != cluster {
		t.Errorf("the RoleBinding after it: %+v, subjects (-want +got):\n%s", binding.ObjectMeta, diff)
	}
	work, found := deployWork(cluster, name, 0), addOn(cluster, name)
	e.get(t.Context(), t, work)
	e.get(t.Context(), t, found)
	if work.UID != made.work.UID || work.ResourceVersion != made.work.ResourceVersion {
		t.Errorf("the work was written: %s", cmp.Diff(made.work, work))
	}
	if diff := cmp.Diff(made.status.Registrations, found.Status.Registrations); diff != "" || found.Status.Namespace != made.status.Namespace {
		t.Errorf("namespace %s, registrations (-want +got):\n%s", found.Status.Namespace, diff)
	}
	if got := writes.About(cluster); strings.Contains(strings.Join(got, "\n"), "manifestworks") {
		t.Errorf("writes of works: %v", got)
	}
	e.delete(t, found)
	eventually(t, "the binding is gone", func(ctx context.Context) (bool, error) { return !e.exists(ctx, t, binding), nil })
}

// testSharedByOCM: the one RoleBinding of OCM in a namespace that the clusters share stays
// until every cluster has one of its own, and goes then.
func testSharedByOCM(t *testing.T, e *env, name string, _ *interrupt.Writes) {
	t.Helper()
	const role = "shared-role"
	clusters := []string{"shared-c1", "shared-c2"}
	e.create(t, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: role}})
	e.letBind(t, role, name)
	permission := fmt.Sprintf(`{"type":"SingleNamespace","singleNamespace":{"namespace":"default","roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":%q}}}`, role)
	e.template(t, name, fmt.Sprintf(kubeClient, permission), workloadIn("Deployment", "own"))
	last := addOn(clusters[1], name)
	shared := bindingOfOCM(last, role, addonv1beta1.BaseSubject{
		User: names.AddOnUser(last.Namespace, name, name+"-agent"), Groups: []string{names.AddOnClusterGroup(last.Namespace, name), names.AddOnGroup(name)},
	})
	shared.Namespace, shared.OwnerReferences = "default", nil
	e.cluster(t, clusters[0])
	e.cluster(t, clusters[1], func(c *clusterv1.ManagedCluster) { c.Spec.HubAcceptsClient = false })
	e.create(t, shared, addOn(clusters[0], name), last, fleet(name, templated))
	e.awaitCondition(t, clusters[0], name, addonv1beta1.ManagedClusterAddOnRegistrationApplied, metav1.ConditionTrue, addonv1beta1.RegistrationAppliedSetPermissionApplied)
	e.binding(t, "default", shared.Name+":"+clusters[0])
	uid := shared.UID
	e.get(t.Context(), t, shared)
	if len(shared.Subjects) != 3 || shared.UID != uid {
		t.Errorf("OCM's RoleBinding changed while a cluster needs it: %+v", shared)
	}
	e.merge(t, managedCluster(clusters[1]), `{"spec":{"hubAcceptsClient":true}}`)
	e.binding(t, "default", shared.Name+":"+clusters[1])
	eventually(t, "OCM's RoleBinding is gone", func(ctx context.Context) (bool, error) { return !e.exists(ctx, t, shared), nil })
	for _, cluster := range clusters {
		e.binding(t, "default", shared.Name+":"+cluster)
	}
}
