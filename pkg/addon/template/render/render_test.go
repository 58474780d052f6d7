package render_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/template/render"
)

const (
	workload = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"{{NAME}}","namespace":"{{INSTALL_NAMESPACE}}"},"spec":{"template":{"spec":{
		"initContainers":[{"name":"i","image":"registry.example.com/a/i:1","args":["{{CLUSTER_NAME}}"]}],
		"containers":[{"name":"c","image":"registry.example.com/a/b:1","args":["--cluster={{ CLUSTER_NAME }}"],"env":[{"name":"CLUSTER_NAME","value":"mine"},{"name":"E","value":"1"}]}]}}}}`
	configMap = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m","namespace":"other"},"data":{"{{NAME}}":"{{ $labels.x }} {{UNKNOWN}}|{{NAME}}"}}`
	binding   = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"b"},"subjects":[{"kind":"ServiceAccount","name":"s","namespace":"x"},{"kind":"Group","name":"g"}]}`
)

func template(manifests ...string) *addonv1alpha1.AddOnTemplateSpec {
	spec := &addonv1alpha1.AddOnTemplateSpec{AddonName: "a"}
	for _, m := range manifests {
		spec.AgentSpec.Workload.Manifests = append(spec.AgentSpec.Workload.Manifests, workv1.Manifest{RawExtension: runtime.RawExtension{Raw: []byte(m)}})
	}
	spec.Registration = []addonv1alpha1.RegistrationSpec{
		{Type: addonv1alpha1.RegistrationTypeKubeClient},
		{Type: addonv1alpha1.RegistrationTypeCustomSigner, CustomSigner: &addonv1alpha1.CustomSignerRegistrationConfig{SignerName: "example.com/s.x"}},
	}
	return spec
}

func values(change func(*addonv1beta1.AddOnDeploymentConfigSpec)) render.Values {
	v := render.Values{AddOn: "a", Cluster: "c1", Namespace: "n"}
	v.Config.CustomizedVariables = []addonv1beta1.CustomizedVariable{{Name: "NAME", Value: `v"},`}, {Name: "CLUSTER_NAME", Value: "other"}}
	if change != nil {
		change(&v.Config)
	}
	return v
}

func objects(t *testing.T, spec *addonv1alpha1.AddOnTemplateSpec, v render.Values) []*unstructured.Unstructured {
	t.Helper()
	got, err := render.Objects(spec, v)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func pod(t *testing.T, object *unstructured.Unstructured) corev1.PodSpec {
	t.Helper()
	raw, _, err := unstructured.NestedMap(object.Object, "spec", "template", "spec")
	if err != nil {
		t.Fatal(err)
	}
	var spec corev1.PodSpec
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &spec); err != nil {
		t.Fatal(err)
	}
	return spec
}

func TestVariables(t *testing.T) {
	t.Parallel()
	got := objects(t, template(workload, configMap), values(nil))
	if got[0].GetName() != `v"},` || got[0].GetNamespace() != "" {
		t.Errorf("a value changed the structure: %v", got[0].Object["metadata"])
	}
	data, _, _ := unstructured.NestedStringMap(got[1].Object, "data")
	if diff := cmp.Diff(map[string]string{`v"},`: `{{ $labels.x }} |v"},`}, data); diff != "" {
		t.Errorf("data (-want +got):\n%s", diff)
	}
	c := pod(t, got[0]).Containers[0]
	if c.Args[0] != "--cluster=c1" {
		t.Errorf("a built-in variable was overridden: %q", c.Args)
	}
	want := []corev1.EnvVar{
		{Name: "E", Value: "1"},
		{Name: "HUB_KUBECONFIG", Value: "/managed/hub-kubeconfig/kubeconfig"},
		{Name: "CLUSTER_NAME", Value: "c1"},
	}
	if diff := cmp.Diff(want, c.Env); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
	// Only a configured namespace is a variable, which a configuration does not override.
	configured := objects(t, template(workload), values(func(c *addonv1beta1.AddOnDeploymentConfigSpec) {
		c.AgentInstallNamespace = "moved"
		c.CustomizedVariables = append(c.CustomizedVariables, addonv1beta1.CustomizedVariable{Name: "INSTALL_NAMESPACE", Value: "other"})
	}))[0]
	want = append(want, corev1.EnvVar{Name: "INSTALL_NAMESPACE", Value: "moved"})
	if diff := cmp.Diff(want, pod(t, configured).Containers[0].Env); diff != "" {
		t.Errorf("environment with a namespace (-want +got):\n%s", diff)
	}
}

// TestInitContainersStay: as in OCM, only containers get variables, credentials, mirrors and
// resources.
func TestInitContainersStay(t *testing.T) {
	t.Parallel()
	got := pod(t, objects(t, template(workload), values(func(c *addonv1beta1.AddOnDeploymentConfigSpec) {
		c.Registries = []addonv1beta1.ImageMirror{{Mirror: "mirror.example.com"}}
		c.ResourceRequirements = []addonv1beta1.ContainerResourceRequirements{{
			ContainerID: "*:*:*", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("1")}},
		}}
		c.ProxyConfig = addonv1beta1.ProxyConfig{HTTPSProxy: "https://p", CABundle: []byte("pem")}
	}))[0]).InitContainers
	want := []corev1.Container{{Name: "i", Image: "registry.example.com/a/i:1", Args: []string{"c1"}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("init containers (-want +got):\n%s", diff)
	}
}

func TestCredentialsAreMounted(t *testing.T) {
	t.Parallel()
	spec := pod(t, objects(t, template(workload), values(nil))[0])
	got := map[string]string{}
	for _, v := range spec.Volumes {
		got[v.Name] = v.Secret.SecretName
	}
	if diff := cmp.Diff(map[string]string{"hub-kubeconfig": "a-hub-kubeconfig", "cert-example-com-s-x": "a-example.com-s.x-client-cert"}, got); diff != "" {
		t.Errorf("volumes (-want +got):\n%s", diff)
	}
	for _, c := range spec.Containers {
		var paths []string
		for _, m := range c.VolumeMounts {
			paths = append(paths, m.Name+" "+m.MountPath)
		}
		if diff := cmp.Diff([]string{"hub-kubeconfig /managed/hub-kubeconfig", "cert-example-com-s-x /managed/example.com-s.x"}, paths); diff != "" {
			t.Errorf("mounts of %s (-want +got):\n%s", c.Name, diff)
		}
	}
}

func TestDeploymentConfig(t *testing.T) {
	t.Parallel()
	got := objects(t, template(workload, binding, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"x"}}`), values(func(c *addonv1beta1.AddOnDeploymentConfigSpec) {
		c.AgentInstallNamespace = "moved"
		c.NodePlacement = &addonv1beta1.NodePlacement{Tolerations: []corev1.Toleration{{Key: "k"}}}
		c.Registries = []addonv1beta1.ImageMirror{{Source: "registry.example.com/a/", Mirror: "mirror.example.com"}, {Source: "nowhere.example.com", Mirror: "x"}}
		c.ProxyConfig = addonv1beta1.ProxyConfig{HTTPSProxy: "https://p", NoProxy: "x", CABundle: []byte("pem")}
		limits := func(n string) corev1.ResourceRequirements {
			return corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse(n)}}
		}
		c.ResourceRequirements = []addonv1beta1.ContainerResourceRequirements{
			{ContainerID: "*:*:*", Resources: limits("1")}, {ContainerID: "deployments:*:c", Resources: limits("2")}, {ContainerID: "daemonsets:*:*", Resources: limits("3")},
		}
	}))
	spec := pod(t, got[0])
	if len(spec.Tolerations) != 1 || spec.NodeSelector != nil {
		t.Errorf("placement %v %v", spec.Tolerations, spec.NodeSelector)
	}
	if c := spec.Containers[0]; c.Image != "mirror.example.com/b:1" || c.Resources.Limits.Cpu().String() != "2" {
		t.Errorf("%s %v", c.Image, c.Resources)
	}
	var env []string
	for _, e := range spec.Containers[0].Env {
		env = append(env, e.Name)
	}
	if want := "HTTPS_PROXY https_proxy NO_PROXY no_proxy CA_BUNDLE_FILE_PATH"; !strings.HasSuffix(strings.Join(env, " "), want) {
		t.Errorf("environment %v", env)
	}
	if got[0].GetNamespace() != "moved" || got[2].GetName() != "moved" {
		t.Errorf("not moved: %v %v", got[0].Object["metadata"], got[2].Object["metadata"])
	}
	want := []any{map[string]any{"kind": "ServiceAccount", "name": "s", "namespace": "moved"}, map[string]any{"kind": "Group", "name": "g"}}
	if diff := cmp.Diff(want, got[1].Object["subjects"]); diff != "" {
		t.Errorf("subjects (-want +got):\n%s", diff)
	}
	bundle, _, _ := unstructured.NestedString(got[3].Object, "data", "ca-bundle.crt")
	if got[3].GetName() != "a-proxy-ca" || got[3].GetNamespace() != "moved" || bundle != "pem" {
		t.Errorf("bundle %v", got[3].Object)
	}
}

func TestRegistriesOfTheCluster(t *testing.T) {
	t.Parallel()
	v := values(nil)
	v.Registries = []addonv1beta1.ImageMirror{{Mirror: "all.example.com/x"}}
	if got := pod(t, objects(t, template(workload), v)[0]).Containers[0].Image; got != "all.example.com/x/b:1" {
		t.Errorf("image %q", got)
	}
}

func TestInvalidTemplates(t *testing.T) {
	t.Parallel()
	for name, spec := range map[string]*addonv1alpha1.AddOnTemplateSpec{
		"no object":     template(`{"secret":"x"}`),
		"no pod":        template(`{"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{"name":"d"},"spec":{"template":{"spec":"secret"}}}`),
		"no containers": template(`{"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{"name":"d"},"spec":{"template":{"spec":{"containers":"secret"}}}}`),
	} {
		if _, err := render.Objects(spec, values(nil)); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzValues: no value of a variable changes the structure of a manifest, and the same
// template gives the same manifests.
func FuzzValues(f *testing.F) {
	f.Add(`"},"kind":"Secret","x":{"y":"`, "{{CLUSTER_NAME}}")
	f.Fuzz(func(t *testing.T, value, text string) {
		quoted, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		raw := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m"},"data":{"a":` + string(quoted) + `,"b":"{{V}}"}}`
		v := render.Values{AddOn: "a", Cluster: "c"}
		v.Config.CustomizedVariables = []addonv1beta1.CustomizedVariable{{Name: "V", Value: value}}
		got, err := render.Objects(template(raw), v)
		if err != nil {
			t.Fatal(err)
		}
		data, _, err := unstructured.NestedStringMap(got[0].Object, "data")
		if err != nil || len(data) != 2 || data["b"] != value || len(got[0].Object) != 4 {
			t.Errorf("%v, %v", got[0].Object, err)
		}
	})
}
