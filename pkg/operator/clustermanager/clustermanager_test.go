package clustermanager_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apply"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/operator/clustermanager"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/operator/internal/operand"
)

const registrationRole = "open-cluster-management:cluster-manager-registration:controller"

func TestInstall(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	op := h.run(t, nil)
	h.expectCondition(t, "Applied", metav1.ConditionTrue, operatorv1.ReasonClusterManagerApplied)
	h.expectCondition(t, "HubRegistrationDegraded", metav1.ConditionTrue, operatorv1.ReasonUnavailableRegistrationPod)
	h.makePodsReady(t)
	h.expectCondition(t, "HubRegistrationDegraded", metav1.ConditionFalse, operatorv1.ReasonRegistrationFunctional)
	h.expectCondition(t, "HubAddOnManagerDegraded", metav1.ConditionFalse, clustermanager.ReasonAddOnManagerFunctional)
	h.expectCondition(t, "Progressing", metav1.ConditionFalse, operatorv1.ReasonUpToDate)
	h.expectCondition(t, clustermanager.ConditionHubAddOnWebhookDegraded, metav1.ConditionTrue, clustermanager.ReasonAddOnWebhookNotTrusted)
	h.expectCondition(t, "ValidFeatureGates", metav1.ConditionTrue, "FeatureGatesAllValid")
	h.expectCondition(t, "HubPlacementDegraded", metav1.ConditionFalse, clustermanager.ReasonPlacementNotDeployed)

	cm := h.clusterManager(t)
	if !slices.Contains(cm.Finalizers, names.FinalizerClusterManager) {
		t.Errorf("finalizers %v", cm.Finalizers)
	}
	var want []operatorv1.GenerationStatus
	for _, name := range []string{"cluster-manager-addon-manager-controller", "cluster-manager-addon-webhook", "cluster-manager-registration-controller"} {
		want = append(want, operatorv1.GenerationStatus{
			Group: "apps", Version: "v1", Resource: "deployments", LastGeneration: 1,
			Namespace: names.HubNamespace, Name: name,
		})
	}
	if diff := cmp.Diff(want, cm.Status.Generations); diff != "" {
		t.Errorf("generations (-want +got):\n%s", diff)
	}
	if len(cm.Status.RelatedResources) < 20 {
		t.Errorf("related resources: %v", cm.Status.RelatedResources)
	}
	expectNoWrites(t, h, op)
	op.stop()
	again := h.run(t, nil)
	expectQuiet(t, again)
	if got := again.writes.Load(); got != 0 {
		t.Errorf("%d writes after a restart, the last: %s", got, again.lastWrite())
	}
}

// expectNoWrites makes the operator look at everything, by an event of every
// watched kind, which must not make it write.
func expectNoWrites(t *testing.T, h *hub, op *operator) {
	t.Helper()
	expectQuiet(t, op)
	before := op.writes.Load()
	touch(t, h, &appsv1.Deployment{}, deploymentKey())
	touch(t, h, &rbacv1.ClusterRole{}, client.ObjectKey{Name: registrationRole})
	touch(t, h, &apiextensionsv1.CustomResourceDefinition{}, client.ObjectKey{Name: "managedclusters.cluster.open-cluster-management.io"})
	expectQuiet(t, op)
	if got := op.writes.Load() - before; got != 0 {
		t.Errorf("%d writes when nothing changed, the last: %s", got, op.lastWrite())
	}
}

// touch changes what the operator does not care for.
func touch(t *testing.T, h *hub, obj client.Object, key client.ObjectKey) {
	t.Helper()
	obj.SetName(key.Name)
	obj.SetNamespace(key.Namespace)
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"somebody":"was-here"}}}`))
	if err := h.admin.Patch(t.Context(), obj, patch); err != nil {
		t.Fatal(err)
	}
}

// TestConversionTrust publishes CAs as the issuer does.
func TestConversionTrust(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	op := h.run(t, nil)
	h.makePodsReady(t)
	h.expectCondition(t, clustermanager.ConditionHubAddOnWebhookDegraded, metav1.ConditionTrue, clustermanager.ReasonAddOnWebhookNotTrusted)
	bundle := &corev1.ConfigMap{Data: map[string]string{names.KeyCABundle: string(h.CAData)}}
	bundle.Namespace, bundle.Name = names.HubNamespace, names.CABundleConfigMap
	if err := h.admin.Create(t.Context(), bundle); err != nil {
		t.Fatal(err)
	}
	trusted := func(want string) {
		for _, name := range []string{"managedclusteraddons", "clustermanagementaddons"} {
			key := client.ObjectKey{Name: name + ".addon.open-cluster-management.io"}
			expectObject(t, h, key, &apiextensionsv1.CustomResourceDefinition{}, func(crd *apiextensionsv1.CustomResourceDefinition) string {
				return cmp.Diff(want, string(crd.Spec.Conversion.Webhook.ClientConfig.CABundle))
			})
		}
	}
	trusted(string(h.CAData))
	h.expectCondition(t, clustermanager.ConditionHubAddOnWebhookDegraded, metav1.ConditionFalse, clustermanager.ReasonAddOnWebhookFunctional)
	// Without the ConfigMap, the CRDs keep what they have, also for an operator
	// that never saw it.
	if err := h.admin.Delete(t.Context(), bundle); err != nil {
		t.Fatal(err)
	}
	expectQuiet(t, op)
	op.stop()
	again := h.run(t, nil)
	expectQuiet(t, again)
	trusted(string(h.CAData))
	if got := again.writes.Load(); got != 0 {
		t.Errorf("%d writes for a ConfigMap that is away", got)
	}
	bundle.ResourceVersion = ""
	bundle.Data[names.KeyCABundle] = string(h.CAData) + string(h.CAData)
	if err := h.admin.Create(t.Context(), bundle); err != nil {
		t.Fatal(err)
	}
	trusted(bundle.Data[names.KeyCABundle])
}

// TestUpgradeFromNoConversion takes over CRDs whose versions the API server
// converted itself.
func TestUpgradeFromNoConversion(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	op := h.run(t, nil)
	h.expectCondition(t, "Applied", metav1.ConditionTrue, operatorv1.ReasonClusterManagerApplied)
	op.stop()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Name = "managedclusteraddons.addon.open-cluster-management.io"
	none := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"applied.open-cluster-management.io/ocm.clustermanager":"old"}},`+
		`"spec":{"conversion":{"strategy":"None","webhook":null}}}`))
	if err := h.admin.Patch(t.Context(), crd, none); err != nil {
		t.Fatal(err)
	}
	h.run(t, nil)
	expectObject(t, h, client.ObjectKeyFromObject(crd), crd, func(crd *apiextensionsv1.CustomResourceDefinition) string {
		if crd.Spec.Conversion.Strategy != apiextensionsv1.WebhookConverter {
			return "the conversion is still " + string(crd.Spec.Conversion.Strategy)
		}
		return cmp.Diff([]string{"v1beta1"}, crd.Status.StoredVersions)
	})
}

func TestDriftIsRepaired(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.run(t, nil)
	h.expectCondition(t, "Applied", metav1.ConditionTrue, operatorv1.ReasonClusterManagerApplied)

	deployment := &appsv1.Deployment{}
	deployment.Name, deployment.Namespace = deploymentKey().Name, deploymentKey().Namespace
	if err := h.admin.Delete(t.Context(), deployment); err != nil {
		t.Fatal(err)
	}
	expectObject(t, h, deploymentKey(), &appsv1.Deployment{}, func(d *appsv1.Deployment) string {
		if d.DeletionTimestamp != nil || d.UID == deployment.UID {
			return "the old deployment is still there"
		}
		return ""
	})
	scaled := &appsv1.Deployment{}
	scaled.Name, scaled.Namespace = deploymentKey().Name, deploymentKey().Namespace
	if err := h.admin.Patch(t.Context(), scaled, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":0}}`))); err != nil {
		t.Fatal(err)
	}
	expectObject(t, h, deploymentKey(), &appsv1.Deployment{}, func(d *appsv1.Deployment) string {
		if *d.Spec.Replicas != 1 {
			return "still scaled down"
		}
		return ""
	})
	role := &rbacv1.ClusterRole{}
	if err := h.admin.Get(t.Context(), client.ObjectKey{Name: registrationRole}, role); err != nil {
		t.Fatal(err)
	}
	rules := len(role.Rules)
	role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}})
	if err := h.admin.Update(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	expectObject(t, h, client.ObjectKey{Name: registrationRole}, &rbacv1.ClusterRole{}, func(r *rbacv1.ClusterRole) string {
		if len(r.Rules) != rules {
			return "the added rule is still there"
		}
		return ""
	})
	policy := client.ObjectKey{Name: "cluster-acceptance.admission.cluster.open-cluster-management.io"}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{}
	binding.Name = policy.Name
	if err := h.admin.Delete(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	expectObject(t, h, policy, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{},
		func(*admissionregistrationv1.ValidatingAdmissionPolicyBinding) string { return "" })
}

func TestSpecIsHonoured(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.run(t, func(c *clustermanager.Config) { c.SyncLabels = true })
	h.expectCondition(t, "Applied", metav1.ConditionTrue, operatorv1.ReasonClusterManagerApplied)
	h.install(t, operatorv1.ClusterManagerSpec{
		RegistrationImagePullSpec: "registry.example/other:v2",
		NodePlacement: operatorv1.NodePlacement{
			NodeSelector: map[string]string{"role": "infra"},
			Tolerations:  []corev1.Toleration{{Key: "infra", Operator: corev1.TolerationOpExists}},
		},
		ResourceRequirement: &operatorv1.ResourceRequirement{Type: operatorv1.ResourceQosClassBestEffort},
		RegistrationConfiguration: &operatorv1.RegistrationHubConfiguration{
			AutoApproveUsers: []string{"bob"},
			FeatureGates: []operatorv1.FeatureGate{
				{Feature: "ManagedClusterAutoApproval", Mode: operatorv1.FeatureGateModeTypeEnable},
				{Feature: "ResourceCleanup", Mode: operatorv1.FeatureGateModeTypeDisable},
				{Feature: "NoSuchGate", Mode: operatorv1.FeatureGateModeTypeEnable},
			},
			RegistrationDrivers: []operatorv1.RegistrationDriverHub{
				{AuthType: "csr", CSR: &operatorv1.CSRConfig{AutoApprovedIdentities: []string{"alice", "carol"}}},
			},
		},
	})
	h.expectCondition(t, "ValidFeatureGates", metav1.ConditionFalse, "InvalidFeatureGatesExisting")
	h.expectCondition(t, "Applied", metav1.ConditionTrue, operatorv1.ReasonClusterManagerApplied)
	expectObject(t, h, deploymentKey(), &appsv1.Deployment{}, func(d *appsv1.Deployment) string {
		pod, container := d.Spec.Template.Spec, d.Spec.Template.Spec.Containers[0]
		want := []string{
			"controller", "hub", "--bind-address=$(POD_IP)",
			"--feature-gates=ManagedClusterAutoApproval=true", "--feature-gates=ResourceCleanup=false",
			"--cluster-auto-approval-users=bob", "--labels=team=fleet",
			"--enabled-registration-drivers=csr", "--auto-approved-csr-users=alice,carol",
		}
		switch {
		case container.Image != "registry.example/other:v2":
			return "image " + container.Image
		case pod.NodeSelector["role"] != "infra" || len(pod.Tolerations) != 1:
			return "not placed"
		case len(container.Resources.Requests) != 0:
			return "requests something"
		case d.Labels["team"] != "fleet":
			return "label not synced"
		}
		return cmp.Diff(want, container.Args)
	})
}

// TestAddOnManagement switches the add-on manager off and on again.
func TestAddOnManagement(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	op := h.run(t, nil)
	h.expectCondition(t, "Applied", metav1.ConditionTrue, operatorv1.ReasonClusterManagerApplied)
	h.expectCondition(t, "HubAddOnManagerDegraded", metav1.ConditionTrue, clustermanager.ReasonUnavailableAddOnManagerPod)
	key := client.ObjectKey{Namespace: names.HubNamespace, Name: "cluster-manager-addon-manager-controller"}
	role := client.ObjectKey{Name: "open-cluster-management:cluster-manager-addon-manager:controller"}
	meta := metav1.ObjectMeta{Namespace: names.HubNamespace, Name: role.Name}
	made := []client.Object{
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "addon-manager-controller-sa"}},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: role.Name}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: role.Name}},
		&rbacv1.Role{ObjectMeta: meta},
		&rbacv1.RoleBinding{ObjectMeta: meta},
		&admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "addon-manager.admission.cluster.open-cluster-management.io"}},
	}
	for _, object := range made {
		if err := h.admin.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			t.Error(err)
		}
	}
	off := operatorv1.FeatureGate{Feature: "AddonManagement", Mode: operatorv1.FeatureGateModeTypeDisable}
	h.install(t, operatorv1.ClusterManagerSpec{AddOnManagerConfiguration: &operatorv1.AddOnManagerConfiguration{
		FeatureGates: []operatorv1.FeatureGate{off},
	}})
	h.expectCondition(t, "HubAddOnManagerDegraded", metav1.ConditionFalse, clustermanager.ReasonAddOnManagementDisabled)
	eventually(t, func(ctx context.Context) string {
		for _, object := range made {
			if err := h.admin.Get(ctx, client.ObjectKeyFromObject(object), object); !apierrors.IsNotFound(err) {
				return object.GetName() + " is still there"
			}
		}
		return ""
	})
	h.install(t, operatorv1.ClusterManagerSpec{
		AddOnManagerImagePullSpec: "registry.example/addons:v2",
		NodePlacement:             operatorv1.NodePlacement{NodeSelector: map[string]string{"role": "infra"}},
	})
	expectObject(t, h, key, &appsv1.Deployment{}, func(d *appsv1.Deployment) string {
		pod := d.Spec.Template.Spec
		if pod.NodeSelector["role"] != "infra" || pod.Containers[0].Image != "registry.example/addons:v2" {
			return "image " + pod.Containers[0].Image
		}
		return cmp.Diff([]string{"controller", "addon-manager", "--bind-address=$(POD_IP)"}, pod.Containers[0].Args)
	})
	expectQuiet(t, op)
}

func TestPullSecretIsSynced(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.run(t, nil)
	copied := client.ObjectKey{Namespace: names.HubNamespace, Name: names.ImagePullSecret}
	content := func(want string) func(*corev1.Secret) string {
		return func(s *corev1.Secret) string { return cmp.Diff(want, string(s.Data[corev1.DockerConfigJsonKey])) }
	}
	expectObject(t, h, copied, &corev1.Secret{}, content("{}"))
	source := &corev1.Secret{}
	source.Namespace, source.Name = names.OperatorNamespace, names.ImagePullSecret
	const login = `{"auths":{"registry.example":{"auth":"eA=="}}}`
	if err := h.admin.Patch(t.Context(), source, client.RawPatch(types.MergePatchType,
		[]byte(`{"stringData":{".dockerconfigjson":"{\"auths\":{\"registry.example\":{\"auth\":\"eA==\"}}}"}}`))); err != nil {
		t.Fatal(err)
	}
	expectObject(t, h, copied, &corev1.Secret{}, content(login))
}

func TestNotSupported(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.install(t, operatorv1.ClusterManagerSpec{DeployOption: operatorv1.ClusterManagerDeployOption{Mode: operatorv1.InstallModeHosted}})
	op := h.run(t, nil)
	h.expectCondition(t, "Applied", metav1.ConditionFalse, operand.ReasonModeNotSupported)
	err := h.admin.Get(t.Context(), client.ObjectKey{Name: names.HubNamespace}, &corev1.Namespace{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("hub namespace: %v", err)
	}
	if got := op.writes.Load(); got != 1 {
		t.Errorf("%d writes, want only the status", got)
	}
	h.install(t, operatorv1.ClusterManagerSpec{RegistrationConfiguration: withDrivers("grpc")})
	h.expectCondition(t, "Applied", metav1.ConditionFalse, clustermanager.ReasonDriverNotSupported)
	var deployments appsv1.DeploymentList
	if err := h.admin.List(t.Context(), &deployments, client.InNamespace(names.HubNamespace)); err != nil {
		t.Fatal(err)
	}
	if len(deployments.Items) > 0 {
		t.Errorf("controllers that would not start, or start otherwise than asked for: %v", deployments.Items)
	}
}

func withDrivers(types ...string) *operatorv1.RegistrationHubConfiguration {
	c := &operatorv1.RegistrationHubConfiguration{}
	for _, auth := range types {
		c.RegistrationDrivers = append(c.RegistrationDrivers, operatorv1.RegistrationDriverHub{AuthType: auth})
	}
	return c
}

// expectConditions waits until every condition of the operator's is there and
// about the current generation.
func (h *hub) expectConditions(t *testing.T) {
	t.Helper()
	eventually(t, func(context.Context) string {
		cm := h.clusterManager(t)
		var current []string
		for _, c := range cm.Status.Conditions {
			if c.ObservedGeneration == cm.Generation {
				current = append(current, c.Type)
			}
		}
		slices.Sort(current)
		return cmp.Diff([]string{
			"Applied", "HubAddOnManagerDegraded", "HubAddOnWebhookDegraded", "HubPlacementDegraded", "HubRegistrationDegraded", "Progressing", "ValidFeatureGates",
		}, current)
	})
}

// TestGatesWithoutEffectStopNothing enables what this version does not
// implement, in every component and of upstream's operator.
func TestGatesWithoutEffectStopNothing(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.run(t, nil)
	h.expectCondition(t, "Applied", metav1.ConditionTrue, operatorv1.ReasonClusterManagerApplied)
	on := func(names ...string) (gates []operatorv1.FeatureGate) {
		for _, name := range names {
			gates = append(gates, operatorv1.FeatureGate{Feature: name, Mode: operatorv1.FeatureGateModeTypeEnable})
		}
		return gates
	}
	h.install(t, operatorv1.ClusterManagerSpec{
		RegistrationImagePullSpec: "operator:v2",
		RegistrationConfiguration: &operatorv1.RegistrationHubConfiguration{FeatureGates: on("ClusterProfile", "NetworkPolicies", "ManagedClusterAutoApproval")},
		WorkConfiguration:         &operatorv1.WorkConfiguration{FeatureGates: on("ManifestWorkReplicaSet", "CleanUpCompletedManifestWork", "NilExecutorValidating")},
		PlacementConfiguration:    &operatorv1.PlacementConfiguration{FeatureGates: on("PlacementDebugServer")},
	})
	h.expectCondition(t, "ValidFeatureGates", metav1.ConditionFalse, "FeatureGatesWithoutEffect")
	message := apimeta.FindStatusCondition(h.clusterManager(t).Status.Conditions, "ValidFeatureGates").Message
	if !strings.HasSuffix(message, ": PlacementDebugServer, ClusterProfile, NetworkPolicies") {
		t.Errorf("message %q", message)
	}
	h.expectCondition(t, "Applied", metav1.ConditionTrue, operatorv1.ReasonClusterManagerApplied)
	h.expectConditions(t)
	expectObject(t, h, deploymentKey(), &appsv1.Deployment{}, func(d *appsv1.Deployment) string {
		container := d.Spec.Template.Spec.Containers[0]
		if container.Image != "operator:v2" {
			return "image " + container.Image
		}
		return cmp.Diff([]string{
			"controller", "hub", "--bind-address=$(POD_IP)", "--feature-gates=ManagedClusterAutoApproval=true",
			"--feature-gates=CleanUpCompletedManifestWork=true", "--feature-gates=ManifestWorkReplicaSet=true",
		}, container.Args)
	})
}

// TestRefusedDriverKeepsTheRunningController asks for a driver that the
// controller would not start with, and for a new image.
func TestRefusedDriverKeepsTheRunningController(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	good := operatorv1.ClusterManagerSpec{RegistrationConfiguration: withDrivers("csr")}
	h.install(t, good)
	h.run(t, nil)
	h.expectCondition(t, "Applied", metav1.ConditionTrue, operatorv1.ReasonClusterManagerApplied)
	h.install(t, operatorv1.ClusterManagerSpec{RegistrationImagePullSpec: "operator:v2", RegistrationConfiguration: withDrivers("csr", "grpc")})
	h.expectCondition(t, "Applied", metav1.ConditionFalse, clustermanager.ReasonDriverNotSupported)
	expectObject(t, h, deploymentKey(), &appsv1.Deployment{}, func(d *appsv1.Deployment) string {
		container := d.Spec.Template.Spec.Containers[0]
		if container.Image != "operator:v2" {
			return "image " + container.Image
		}
		return cmp.Diff([]string{"controller", "hub", "--bind-address=$(POD_IP)", "--enabled-registration-drivers=csr"}, container.Args)
	})
	h.expectConditions(t)
	h.install(t, operatorv1.ClusterManagerSpec{DeployOption: operatorv1.ClusterManagerDeployOption{Mode: operatorv1.InstallModeHosted}})
	h.expectCondition(t, "Applied", metav1.ConditionFalse, operand.ReasonModeNotSupported)
	h.expectConditions(t)
	h.install(t, good)
	h.expectCondition(t, "Applied", metav1.ConditionTrue, operatorv1.ReasonClusterManagerApplied)
}

func TestUpgradeReplacesOnlyWhatChanged(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	old := h.run(t, nil)
	h.expectCondition(t, "Applied", metav1.ConditionTrue, operatorv1.ReasonClusterManagerApplied)
	// What an older release had installed and this one no longer has.
	leftover := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
		Namespace: names.HubNamespace, Name: "old-controller-sa",
		Labels:      map[string]string{names.LabelCreatedByClusterManager: names.ClusterManagerName},
		Annotations: map[string]string{apply.HashAnnotationPrefix + clustermanager.FieldManager: "old"},
	}}
	// The label alone does not make it ours: upstream's operator sets it too.
	foreign := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
		Namespace: names.HubNamespace, Name: "somebody", Labels: leftover.Labels,
	}}
	for _, obj := range []client.Object{leftover, foreign} {
		if err := h.admin.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	old.stop()
	roleBefore, deploymentBefore := &rbacv1.ClusterRole{}, &appsv1.Deployment{}
	if err := h.admin.Get(t.Context(), client.ObjectKey{Name: registrationRole}, roleBefore); err != nil {
		t.Fatal(err)
	}
	if err := h.admin.Get(t.Context(), deploymentKey(), deploymentBefore); err != nil {
		t.Fatal(err)
	}

	newer := h.run(t, func(c *clustermanager.Config) { c.Image, c.Version = "operator:v2", "1.1.0" })
	expectObject(t, h, deploymentKey(), &appsv1.Deployment{}, func(d *appsv1.Deployment) string {
		if d.UID != deploymentBefore.UID {
			t.Fatal("the deployment was made anew")
		}
		return cmp.Diff("operator:v2", d.Spec.Template.Spec.Containers[0].Image)
	})
	eventually(t, func(ctx context.Context) string {
		if err := h.admin.Get(ctx, client.ObjectKeyFromObject(leftover), leftover); !apierrors.IsNotFound(err) {
			return "what is no longer installed is still there"
		}
		return ""
	})
	expectQuiet(t, newer)
	roleAfter := &rbacv1.ClusterRole{}
	if err := h.admin.Get(t.Context(), client.ObjectKey{Name: registrationRole}, roleAfter); err != nil {
		t.Fatal(err)
	}
	if roleAfter.ResourceVersion != roleBefore.ResourceVersion {
		t.Error("a role that did not change was written")
	}
	if err := h.admin.Get(t.Context(), client.ObjectKeyFromObject(foreign), foreign); err != nil {
		t.Errorf("what was not ours: %v", err)
	}

	newer.stop()
	older := h.run(t, nil)
	expectObject(t, h, deploymentKey(), &appsv1.Deployment{}, func(d *appsv1.Deployment) string {
		return cmp.Diff("operator:v1", d.Spec.Template.Spec.Containers[0].Image)
	})
	expectQuiet(t, older)
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := h.admin.Get(t.Context(), client.ObjectKey{Name: "managedclusters.cluster.open-cluster-management.io"}, crd); err != nil {
		t.Fatal(err)
	}
	if got := crd.Annotations[names.AnnotationVersion]; got != "1.1.0" {
		t.Errorf("an older operator wrote the CRD of version 1.1.0: %s", got)
	}
}

// TestKilledAfterAnyWrite kills the operator again and again, each time a write
// or two after its start, first while it installs and then while it removes.
func TestKilledAfterAnyWrite(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	runs := h.killUntil(t, func(ctx context.Context) bool {
		cm := &operatorv1.ClusterManager{}
		err := h.admin.Get(ctx, client.ObjectKey{Name: names.ClusterManagerName}, cm)
		return err == nil && apimeta.IsStatusConditionTrue(cm.Status.Conditions, "Applied")
	})
	if runs < 10 {
		t.Errorf("installed within %d lives", runs)
	}
	h.makePodsReady(t)
	if err := h.admin.Delete(t.Context(), h.clusterManager(t)); err != nil {
		t.Fatal(err)
	}
	gone := func(ctx context.Context) bool {
		err := h.admin.Get(ctx, client.ObjectKey{Name: names.ClusterManagerName}, &operatorv1.ClusterManager{})
		return apierrors.IsNotFound(err)
	}
	if runs = h.killUntil(t, gone); runs < 10 {
		t.Errorf("removed within %d lives", runs)
	}
	h.expectNothingLeft(t)
}

// killUntil runs operators that live for one write, or two, or three, and so
// on in turn, until done. It returns how many it took.
func (h *hub) killUntil(t *testing.T, done func(context.Context) bool) int {
	t.Helper()
	runs := 0
	for !done(t.Context()) {
		runs++
		if runs > 100 {
			t.Fatal("no progress in 100 lives")
		}
		op := h.run(t, func(*clustermanager.Config) {}, int64(1+runs%3))
		eventually(t, func(ctx context.Context) string {
			select {
			case <-op.dead:
				return ""
			default:
			}
			if done(ctx) {
				return ""
			}
			return "the operator lives on"
		})
		op.stop()
	}
	return runs
}

func TestDeletion(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.run(t, nil)
	h.expectCondition(t, "Applied", metav1.ConditionTrue, operatorv1.ReasonClusterManagerApplied)
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1", Finalizers: []string{names.FinalizerRegistration}}}
	if err := h.admin.Create(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	if err := h.admin.Delete(t.Context(), h.clusterManager(t)); err != nil {
		t.Fatal(err)
	}
	h.expectCondition(t, "Applied", metav1.ConditionFalse, clustermanager.ReasonDeleting)
	eventually(t, func(ctx context.Context) string {
		cm := &operatorv1.ClusterManager{}
		if err := h.admin.Get(ctx, client.ObjectKey{Name: names.ClusterManagerName}, cm); err != nil {
			return err.Error()
		}
		for _, c := range cm.Status.Conditions {
			if c.Type == "Applied" && strings.Contains(c.Message, "managedclusters.cluster.open-cluster-management.io") && strings.Contains(c.Message, "c1") {
				return ""
			}
		}
		return "no condition names the cluster that is waited for"
	})
	// The controllers go on running while a cluster takes its leave, and find
	// the kinds that they need for it, also after a restart.
	for _, name := range []string{"managedclusteraddons.addon", "manifestworks.work"} {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := h.admin.Get(t.Context(), client.ObjectKey{Name: name + ".open-cluster-management.io"}, crd); err != nil || crd.DeletionTimestamp != nil {
			t.Errorf("CRD %s: %v", name, err)
		}
	}
	if err := h.admin.Get(t.Context(), deploymentKey(), &appsv1.Deployment{}); err != nil {
		t.Errorf("deployment: %v", err)
	}
	// The API server marks the objects of a CRD that is deleted at any time: no version.
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	if err := h.admin.Patch(t.Context(), cluster, patch); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(ctx context.Context) string {
		err := h.admin.Get(ctx, client.ObjectKey{Name: names.ClusterManagerName}, &operatorv1.ClusterManager{})
		if !apierrors.IsNotFound(err) {
			return "the ClusterManager is still there"
		}
		return ""
	})
	h.expectNothingLeft(t)
}

func TestDeletionCanLeaveTheClusters(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.run(t, func(c *clustermanager.Config) { c.SkipRemoveCRDs = true })
	h.expectCondition(t, "Applied", metav1.ConditionTrue, operatorv1.ReasonClusterManagerApplied)
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1"}}
	if err := h.admin.Create(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	if err := h.admin.Delete(t.Context(), h.clusterManager(t)); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(ctx context.Context) string {
		err := h.admin.Get(ctx, client.ObjectKey{Name: names.ClusterManagerName}, &operatorv1.ClusterManager{})
		if !apierrors.IsNotFound(err) {
			return "the ClusterManager is still there"
		}
		return ""
	})
	if err := h.admin.Get(t.Context(), client.ObjectKeyFromObject(cluster), cluster); err != nil || cluster.DeletionTimestamp != nil {
		t.Errorf("the cluster: %v", err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := h.admin.Get(t.Context(), client.ObjectKey{Name: "managedclusters.cluster.open-cluster-management.io"}, crd); err != nil {
		t.Fatal(err)
	}
	if version, ok := crd.Annotations[names.AnnotationVersion]; ok {
		t.Errorf("the CRD still carries version %s", version)
	}
}

// expectNothingLeft looks for what the operator had installed.
func (h *hub) expectNothingLeft(t *testing.T) {
	t.Helper()
	for name, obj := range map[string]client.Object{
		registrationRole: &rbacv1.ClusterRole{},
		"managedclusters.cluster.open-cluster-management.io":              &apiextensionsv1.CustomResourceDefinition{},
		"cluster-acceptance.admission.cluster.open-cluster-management.io": &admissionregistrationv1.ValidatingAdmissionPolicy{},
		names.HubNamespace: &corev1.Namespace{},
	} {
		if err := h.admin.Get(t.Context(), client.ObjectKey{Name: name}, obj); !apierrors.IsNotFound(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
