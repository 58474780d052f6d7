package takeover_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// templated is the name of an add-on that is made from an AddOnTemplate, and the namespace
// of its agent.
const templated = "templated"

// templateRole is the ClusterRole that the template asks for and nobody grants.
const templateRole = "templated-role"

// createTemplate creates the add-on, and waits until it runs.
func createTemplate(t *testing.T, hub, managed client.Client) {
	t.Helper()
	agent := deployment(templated)
	agent.Namespace = templated
	template := addonv1alpha1.AddOnTemplate{
		TypeMeta: metav1.TypeMeta{APIVersion: addonv1alpha1.GroupVersion.String(), Kind: "AddOnTemplate"}, ObjectMeta: metav1.ObjectMeta{Name: templated},
	}
	template.Spec.AddonName = templated
	template.Spec.AgentSpec.Workload.Manifests = []workv1.Manifest{
		{RawExtension: runtime.RawExtension{Object: &corev1.Namespace{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: templated},
		}}},
		{RawExtension: runtime.RawExtension{Object: agent}},
	}
	template.Spec.Registration = []addonv1alpha1.RegistrationSpec{{
		Type: addonv1alpha1.RegistrationTypeKubeClient,
		KubeClient: &addonv1alpha1.KubeClientRegistrationConfig{HubPermissions: []addonv1alpha1.HubPermissionConfig{{
			Type:           addonv1alpha1.HubPermissionsBindingCurrentCluster,
			CurrentCluster: &addonv1alpha1.CurrentClusterBindingConfig{ClusterRoleName: templateRole},
		}}},
	}}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&template)
	if err != nil {
		t.Fatal(err)
	}
	management := &addonv1beta1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: templated}}
	management.Spec.InstallStrategy.Type = addonv1beta1.AddonInstallStrategyManual
	management.Spec.DefaultConfigs = []addonv1beta1.AddOnConfig{{
		ConfigGroupResource: addonv1beta1.ConfigGroupResource{Group: addonv1beta1.GroupName, Resource: "addontemplates"},
		ConfigReferent:      addonv1beta1.ConfigReferent{Name: templated},
	}}
	installed := &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: templated}}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: templateRole}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}},
	}}
	for _, obj := range []client.Object{role, &unstructured.Unstructured{Object: content}, management, installed} {
		if err := hub.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	awaitApplied(t, hub, names.AddOnDeployWork(templated, 0))
	if err := awaitAvailable(t, managed, agent); err != nil {
		t.Fatal(err)
	}
}

// disguiseTemplate gives what there is of the add-on the form that OCM's add-on manager and
// agent give it: fields without a value in the manifests, a RoleBinding that also binds a
// group of all clusters, and a Secret without our marks.
func disguiseTemplate(t *testing.T, hub, managed client.Client) {
	t.Helper()
	var work workv1.ManifestWork
	if err := hub.Get(t.Context(), client.ObjectKey{Namespace: cluster, Name: names.AddOnDeployWork(templated, 0)}, &work); err != nil {
		t.Fatal(err)
	}
	for i, m := range work.Spec.Workload.Manifests {
		var agent map[string]any
		if err := json.Unmarshal(m.Raw, &agent); err != nil {
			t.Fatal(err)
		}
		if agent["kind"] != "Deployment" {
			continue
		}
		agent["status"] = map[string]any{}
		_ = unstructured.SetNestedMap(agent, map[string]any{}, "spec", "strategy")
		_ = unstructured.SetNestedField(agent, nil, "spec", "template", "metadata", "creationTimestamp")
		raw, err := json.Marshal(agent)
		if err != nil {
			t.Fatal(err)
		}
		work.Spec.Workload.Manifests[i].Raw = raw
	}
	if err := hub.Update(t.Context(), &work); err != nil {
		t.Fatal(err)
	}
	user := func(kind, name string) rbacv1.Subject {
		return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}
	}
	err := hub.Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: cluster, Name: names.AddOnTemplateBinding(templated, "ClusterRole"), OwnerReferences: work.OwnerReferences,
			Labels: map[string]string{names.LabelAddOnName: templated, names.LabelAddOnTemplate: ""},
		},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: templateRole},
		Subjects: []rbacv1.Subject{
			user(rbacv1.UserKind, names.AddOnUser(cluster, templated, templated+"-agent")),
			user(rbacv1.GroupKind, names.AddOnClusterGroup(cluster, templated)), user(rbacv1.GroupKind, names.AddOnGroup(templated)),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: templated, Name: names.AddOnHubKubeconfigSecret(templated)}}
	if err := managed.Patch(t.Context(), secret, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":null,"annotations":null}}`))); err != nil {
		t.Fatal(err)
	}
}

// templateState is what of the add-on must stay.
func templateState(t *testing.T, hub, managed client.Client) map[string]string {
	t.Helper()
	var (
		agent    appsv1.Deployment
		pods     corev1.PodList
		secret   corev1.Secret
		work     workv1.ManifestWork
		found    addonv1beta1.ManagedClusterAddOn
		requests certificatesv1.CertificateSigningRequestList
		bindings rbacv1.RoleBindingList
	)
	key := client.ObjectKey{Namespace: templated, Name: templated}
	ofAddOn := client.MatchingLabels{names.LabelAddOnName: templated}
	err := errors.Join(managed.Get(t.Context(), key, &agent), managed.List(t.Context(), &pods, client.InNamespace(templated)),
		managed.Get(t.Context(), client.ObjectKey{Namespace: templated, Name: names.AddOnHubKubeconfigSecret(templated)}, &secret),
		hub.Get(t.Context(), client.ObjectKey{Namespace: cluster, Name: names.AddOnDeployWork(templated, 0)}, &work),
		hub.Get(t.Context(), client.ObjectKey{Namespace: cluster, Name: templated}, &found),
		hub.List(t.Context(), &requests, ofAddOn), hub.List(t.Context(), &bindings, ofAddOn))
	if err != nil {
		t.Fatal(err)
	}
	registrations, err := json.Marshal(found.Status.Registrations)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{
		"the add-on's workload":    fmt.Sprint(agent.UID, " ", agent.ResourceVersion),
		"the add-on's certificate": fmt.Sprint(secret.UID, " ", string(secret.Data[corev1.TLSCertKey]), string(secret.Data[names.KeyKubeconfig])),
		"the add-on's work":        fmt.Sprint(work.UID, " ", work.Generation, " ", work.Annotations),
		"the add-on's identity":    found.Status.Namespace + " " + string(registrations),
	}
	for i := range pods.Items {
		out["the add-on's pod "+pods.Items[i].Name] = string(pods.Items[i].UID)
	}
	for i := range requests.Items {
		out["the add-on's request "+requests.Items[i].Name] = string(requests.Items[i].UID)
	}
	for i := range bindings.Items {
		out["the add-on's binding "+bindings.Items[i].Name] = fmt.Sprint(bindings.Items[i].UID, " ", bindings.Items[i].ResourceVersion)
	}
	return out
}

// awaitUngranted waits until our add-on manager has looked at the add-on and says what it
// is not granted.
func awaitUngranted(t *testing.T, hub client.Client) {
	t.Helper()
	eventually(t, "the add-on says what to grant", func(ctx context.Context) error {
		var found addonv1beta1.ManagedClusterAddOn
		if err := hub.Get(ctx, client.ObjectKey{Namespace: cluster, Name: templated}, &found); err != nil {
			return err
		}
		for _, c := range found.Status.Conditions {
			if c.Type == addonv1beta1.ManagedClusterAddOnRegistrationApplied && strings.Contains(c.Message, templated+":clusterrole:"+templateRole) {
				return nil
			}
		}
		return fmt.Errorf("%+v", found.Status.Conditions)
	})
}
