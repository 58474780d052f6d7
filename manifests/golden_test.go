package manifests_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/identity"
)

var update = flag.Bool("update", false, "write the golden files")

// pod is a component with every choice made.
func pod() manifests.Pod {
	return manifests.Pod{
		Image: "registry.example/kubectl-ocm:v1", Replicas: 1,
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2m"), corev1.ResourceMemory: resource.MustParse("16Mi")},
		},
	}
}

func fullPod() manifests.Pod {
	p := pod()
	p.Replicas = 3
	p.NodeSelector = map[string]string{"node-role.kubernetes.io/infra": ""}
	p.Tolerations = []corev1.Toleration{{Key: "infra", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}}
	p.PriorityClassName = "system-cluster-critical"
	p.HostAliases = []corev1.HostAlias{{IP: "192.0.2.1", Hostnames: []string{"hub.example"}}}
	return p
}

func hubOperator() manifests.HubOperator {
	return manifests.HubOperator{Version: "1.2.3", Operator: pod()}
}

func klusterletOperator() manifests.KlusterletOperator {
	return manifests.KlusterletOperator{
		Version: "1.2.3", Operator: pod(), BootstrapKubeconfig: []byte("kubeconfig"), Work: names.WorkPermissionsView,
		Spec: operatorv1.KlusterletSpec{
			Namespace: names.AgentNamespace, ClusterName: "cluster1",
			DeployOption: operatorv1.KlusterletDeployOption{Mode: operatorv1.InstallModeDefault},
		},
	}
}

func hub() manifests.Hub {
	return manifests.Hub{
		Name: "cluster-manager", Namespace: names.HubNamespace, Version: "1.2.3",
		Labels:       map[string]string{names.LabelCreatedByClusterManager: "cluster-manager"},
		DockerConfig: []byte("{}"), Registration: pod(), AddOnManager: &manifests.Component{Pod: pod()},
		AddOnWebhook: pod(), IdentityAnnotations: identity.Annotations(),
	}
}

// tokenAuthorizer is a hub with little but a token authorizer.
func tokenAuthorizer() manifests.Hub {
	v := hub()
	v.AddOnManager = nil
	v.TokenAuthorizer = &manifests.TokenAuthorizer{Component: manifests.Component{Pod: pod()}}
	v.TokenAuthorizer.Pod.Replicas = 2
	return v
}

func klusterlet() manifests.Klusterlet {
	return manifests.Klusterlet{
		Name: "klusterlet", Namespace: names.AgentNamespace, Version: "1.2.3",
		Labels:       map[string]string{names.LabelCreatedByKlusterlet: "klusterlet"},
		DockerConfig: []byte("{}"), AddOnNamespace: true, AddOnManagement: true,
		Registration: pod(), RegistrationArgs: []string{"--spoke-cluster-name=cluster1"},
		Work: &manifests.WorkAgent{
			Component:   manifests.Component{Pod: pod(), Args: []string{"--spoke-cluster-name=cluster1"}},
			Permissions: names.WorkPermissionsView,
		},
	}
}

// imagePull is the image pull secret controller of a whole cluster.
func imagePull() manifests.ImagePull {
	p := pod()
	p.Replicas = 2
	return manifests.ImagePull{Controller: manifests.Component{
		Pod: p, Args: []string{"--audience=registry.example.com", "--registry=registry.example.com"},
	}}
}

// systemRules are what the driver awsirsa needs in kube-system.
func systemRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{"aws-auth"}, Verbs: []string{"get", "update"}}}
}

type renderFunc func() ([]*unstructured.Unstructured, error)

// golden is every way of rendering, by the golden file's name. The CRDs are not
// in it: they are files in this repository themselves.
func golden() map[string]renderFunc {
	return map[string]renderFunc{
		"hub-operator": func() ([]*unstructured.Unstructured, error) {
			return manifests.RenderHubOperator(hubOperator())
		},
		"hub-operator-token": func() ([]*unstructured.Unstructured, error) {
			v := hubOperator()
			v.SkipNamespace, v.BootstrapToken = true, "0123456789abcdef"
			v.Operator, v.Labels = fullPod(), map[string]string{"team": "fleet"}
			v.DockerConfig = []byte(`{"auths":{"registry.example":{"auth":"eA=="}}}`)
			v.Spec.RegistrationConfiguration = &operatorv1.RegistrationHubConfiguration{
				FeatureGates:        []operatorv1.FeatureGate{{Feature: "ManagedClusterAutoApproval", Mode: operatorv1.FeatureGateModeTypeEnable}},
				RegistrationDrivers: []operatorv1.RegistrationDriverHub{{AuthType: "csr", CSR: &operatorv1.CSRConfig{AutoApprovedIdentities: []string{"alice"}}}},
			}
			return manifests.RenderHubOperator(v)
		},
		"hub-operator-aws": func() ([]*unstructured.Unstructured, error) {
			v := hubOperator()
			v.System = systemRules()
			v.Spec.RegistrationConfiguration = &operatorv1.RegistrationHubConfiguration{
				RegistrationDrivers: []operatorv1.RegistrationDriverHub{{
					AuthType: "awsirsa", AwsIrsa: &operatorv1.AwsIrsaConfig{HubClusterArn: "arn:aws-us-gov:eks:us-gov-west-1:123456789012:cluster/hub"},
				}},
			}
			return manifests.RenderHubOperator(v)
		},
		"klusterlet-operator": func() ([]*unstructured.Unstructured, error) {
			return manifests.RenderKlusterletOperator(klusterletOperator())
		},
		"klusterlet-operator-custom": func() ([]*unstructured.Unstructured, error) {
			v := klusterletOperator()
			v.SkipNamespace, v.Name, v.BootstrapKubeconfig, v.Work = true, "other", nil, "deployer"
			v.Operator, v.Labels = fullPod(), map[string]string{"team": "fleet"}
			v.Spec.Namespace = "open-cluster-management-other"
			v.Spec.RegistrationConfiguration = &operatorv1.RegistrationConfiguration{
				ClientCertExpirationSeconds:       3600,
				AddOnKubeClientRegistrationDriver: &operatorv1.AddOnRegistrationDriver{AuthType: "token"},
			}
			return manifests.RenderKlusterletOperator(v)
		},
		"klusterlet-operator-work-admin": func() ([]*unstructured.Unstructured, error) {
			v := klusterletOperator()
			v.Work = names.WorkPermissionsAdmin
			return manifests.RenderKlusterletOperator(v)
		},
		"klusterlet-operator-without-work": func() ([]*unstructured.Unstructured, error) {
			v := klusterletOperator()
			v.Work = ""
			return manifests.RenderKlusterletOperator(v)
		},
		"hub-base":      func() ([]*unstructured.Unstructured, error) { return manifests.RenderHubBase(hub()) },
		"hub-admission": func() ([]*unstructured.Unstructured, error) { return manifests.RenderHubAdmission(hub()) },
		"hub-admission-executors": func() ([]*unstructured.Unstructured, error) {
			v := hub()
			v.NilExecutorValidating = true
			objs, err := manifests.RenderHubAdmission(v)
			return slices.DeleteFunc(objs, func(obj *unstructured.Unstructured) bool {
				return obj.GetName() != "executors.admission.work.open-cluster-management.io"
			}), err
		},
		"hub-runtime": func() ([]*unstructured.Unstructured, error) { return manifests.RenderHubRuntime(hub()) },
		"hub-runtime-custom": func() ([]*unstructured.Unstructured, error) {
			v := hub()
			v.Registration, v.RegistrationArgs = fullPod(), []string{"--feature-gates=ResourceCleanup=false"}
			v.AddOnManager = &manifests.Component{Pod: fullPod(), Args: []string{"--feature-gates=AddOnManagement=true"}}
			return manifests.RenderHubRuntime(v)
		},
		"hub-base-token-authorizer":    func() ([]*unstructured.Unstructured, error) { return manifests.RenderHubBase(tokenAuthorizer()) },
		"hub-runtime-token-authorizer": func() ([]*unstructured.Unstructured, error) { return manifests.RenderHubRuntime(tokenAuthorizer()) },
		"hub-runtime-aws": func() ([]*unstructured.Unstructured, error) {
			v := hub()
			v.AddOnManager = nil
			v.RegistrationArgs = []string{"--enabled-registration-drivers=awsirsa", "--hub-cluster-arn=arn:aws-us-gov:eks:us-gov-west-1:123456789012:cluster/hub"}
			v.RegistrationAnnotations = map[string]string{"eks.amazonaws.com/role-arn": "arn:aws-us-gov:iam::123456789012:role/hub_managed-cluster-identity-creator"}
			return manifests.RenderHubRuntime(v)
		},
		"hub-base-aws": func() ([]*unstructured.Unstructured, error) {
			v := hub()
			v.AddOnManager = nil
			v.System = systemRules()
			v.RegistrationAnnotations = map[string]string{"eks.amazonaws.com/role-arn": "arn:aws-us-gov:iam::123456789012:role/hub_managed-cluster-identity-creator"}
			return manifests.RenderHubBase(v)
		},
		"hub-base-minimal": func() ([]*unstructured.Unstructured, error) {
			v := hub()
			v.AddOnManager = nil
			return manifests.RenderHubBase(v)
		},
		"hub-base-replicasets": func() ([]*unstructured.Unstructured, error) {
			v := hub()
			v.ReplicaSets = true
			objs, err := manifests.RenderHubBase(v)
			return slices.DeleteFunc(objs, func(obj *unstructured.Unstructured) bool {
				return obj.GetName() != "open-cluster-management:cluster-manager-replicasets:controller"
			}), err
		},
		"klusterlet-base": func() ([]*unstructured.Unstructured, error) { return manifests.RenderKlusterletBase(klusterlet()) },
		"klusterlet-base-issuer": func() ([]*unstructured.Unstructured, error) {
			v := klusterlet()
			v.PublishIssuer = true
			return manifests.RenderKlusterletBase(v)
		},
		"klusterlet-base-minimal": func() ([]*unstructured.Unstructured, error) {
			v := klusterlet()
			v.DockerConfig, v.AddOnManagement, v.AddOnNamespace = nil, false, false
			v.RegistrationAnnotations = map[string]string{"eks.amazonaws.com/role-arn": "arn:aws:iam::123456789012:role/x"}
			return manifests.RenderKlusterletBase(v)
		},
		"klusterlet-work": func() ([]*unstructured.Unstructured, error) { return manifests.RenderKlusterletWork(klusterlet()) },
		"klusterlet-work-admin": func() ([]*unstructured.Unstructured, error) {
			v := klusterlet()
			v.Work.Permissions = names.WorkPermissionsAdmin
			return manifests.RenderKlusterletWork(v)
		},
		"klusterlet-work-none": func() ([]*unstructured.Unstructured, error) {
			v := klusterlet()
			v.Work.Permissions = names.WorkPermissionsNone
			return manifests.RenderKlusterletWork(v)
		},
		"imagepull": func() ([]*unstructured.Unstructured, error) { return manifests.RenderImagePull(imagePull()) },
		"imagepull-namespaces": func() ([]*unstructured.Unstructured, error) {
			v := imagePull()
			v.Controller.Pod, v.SkipNamespace = fullPod(), true
			v.Namespaces, v.OnlyUsed = []string{"default", "kube-public"}, true
			v.ConfigMap = types.NamespacedName{Namespace: "kube-public", Name: "registries"}
			v.LooksUp = true
			return manifests.RenderImagePull(v)
		},
		"klusterlet-runtime": func() ([]*unstructured.Unstructured, error) { return manifests.RenderKlusterletRuntime(klusterlet()) },
	}
}

func TestGolden(t *testing.T) {
	t.Parallel()
	for name, render := range golden() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objs, err := render()
			if err != nil {
				t.Fatal(err)
			}
			var got bytes.Buffer
			for _, obj := range objs {
				if obj.GetKind() == "CustomResourceDefinition" {
					continue
				}
				data, err := yaml.Marshal(obj.Object)
				if err != nil {
					t.Fatal(err)
				}
				got.WriteString("---\n")
				got.Write(data)
			}
			file := filepath.Join("testdata", name+".yaml")
			if *update {
				if err := os.WriteFile(file, got.Bytes(), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Errorf("run the test with -update if this is meant (-want +got):\n%s", diff)
			}
		})
	}
}

// TestMemoryLimit: the work agent, which evaluates what others wrote, has a memory limit that
// is never below its request; one that is given stays.
func TestMemoryLimit(t *testing.T) {
	t.Parallel()
	memory := func(size string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(size)}
	}
	for name, tc := range map[string]struct {
		given corev1.ResourceRequirements
		want  string
	}{
		"nothing":         {want: "1Gi"},
		"a request":       {given: corev1.ResourceRequirements{Requests: memory("16Mi")}, want: "1Gi"},
		"a large request": {given: corev1.ResourceRequirements{Requests: memory("3Gi")}, want: "3Gi"},
		"a limit":         {given: corev1.ResourceRequirements{Limits: memory("100Mi")}, want: "100Mi"},
	} {
		v := klusterlet()
		v.Work.Pod.Resources = tc.given
		objs, err := manifests.RenderKlusterletWork(v)
		if err != nil {
			t.Fatal(err)
		}
		for _, obj := range objs {
			if obj.GetKind() != "Deployment" {
				continue
			}
			var d appsv1.Deployment
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &d); err != nil {
				t.Fatal(err)
			}
			if got := d.Spec.Template.Spec.Containers[0].Resources.Limits.Memory(); got.Cmp(resource.MustParse(tc.want)) != 0 {
				t.Errorf("%s: the limit is %v, want %s", name, got, tc.want)
			}
		}
	}
}

func TestValuesCannotChangeTheShape(t *testing.T) {
	t.Parallel()
	evil := "x\"\nkind: Secret\n---\nkind: Namespace"
	v := klusterletOperator()
	v.Spec.ClusterName, v.Operator.Image, v.Labels = evil, evil, map[string]string{evil: evil}
	plain, err := manifests.RenderKlusterletOperator(klusterletOperator())
	if err != nil {
		t.Fatal(err)
	}
	objs, err := manifests.RenderKlusterletOperator(v)
	if err != nil {
		t.Fatal(err)
	}
	if len(objs) != len(plain) {
		t.Fatalf("%d objects, want %d", len(objs), len(plain))
	}
	i := slices.IndexFunc(objs, func(obj *unstructured.Unstructured) bool { return obj.GetKind() == "Klusterlet" })
	if i < 0 {
		t.Fatal("there is no Klusterlet")
	}
	if name, _, err := unstructured.NestedString(objs[i].Object, "spec", "clusterName"); err != nil || name != evil {
		t.Errorf("cluster name %q, %v", name, err)
	}
}

func TestKlusterletNeedsANamespace(t *testing.T) {
	t.Parallel()
	if _, err := manifests.RenderKlusterletOperator(manifests.KlusterletOperator{}); err == nil {
		t.Error("no error")
	}
}
