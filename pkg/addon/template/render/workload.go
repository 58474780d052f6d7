package render

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// Where the containers of workloads find what the add-on manager gives them.
// See docs/reference/wire-contract.md#addon-templates.
const (
	mountRoot         = "/managed/"
	hubKubeconfigPath = mountRoot + "hub-kubeconfig"
	proxyBundlePath   = mountRoot + "proxy-ca"
	proxyBundleKey    = "ca-bundle.crt"
)

// Workload returns the plural name of an object's kind if the object creates pods of
// the agent, "" for other objects.
func Workload(object *unstructured.Unstructured) string {
	switch object.GroupVersionKind().GroupKind() {
	case appsv1.SchemeGroupVersion.WithKind("Deployment").GroupKind():
		return "deployments"
	case appsv1.SchemeGroupVersion.WithKind("DaemonSet").GroupKind():
		return "daemonsets"
	}
	return ""
}

// decorate changes the pod template of a workload.
func decorate(object *unstructured.Unstructured, spec *addonv1alpha1.AddOnTemplateSpec, values Values, preset []variable) error {
	resource := Workload(object)
	if resource == "" {
		return nil
	}
	raw, _, err := unstructured.NestedMap(object.Object, "spec", "template", "spec")
	if err != nil {
		return errors.New("spec.template.spec is not an object")
	}
	var pod corev1.PodSpec
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &pod); err != nil {
		return errors.New("spec.template.spec is not the spec of a pod")
	}
	environment(&pod, preset)
	if err := credentials(&pod, spec, values.AddOn); err != nil {
		return err
	}
	place(&pod, values.Config.NodePlacement)
	mirror(&pod, values)
	proxy(&pod, values)
	if err := require(&pod, values.Config.ResourceRequirements, resource+":"+object.GetName()+":"); err != nil {
		return err
	}
	changed, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&pod)
	if err != nil {
		return err
	}
	return unstructured.SetNestedMap(object.Object, changed, "spec", "template", "spec")
}

// each calls do for the containers of a pod. As in OCM, init containers stay as they are in
// the template: a take-over would otherwise restart the pods.
func each(pod *corev1.PodSpec, do func(*corev1.Container)) {
	for i := range pod.Containers {
		do(&pod.Containers[i])
	}
}

// environment gives containers the variables, in place of theirs of the same names.
func environment(pod *corev1.PodSpec, variables []variable) {
	each(pod, func(c *corev1.Container) {
		for _, v := range variables {
			c.Env = slices.DeleteFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == v.name })
			c.Env = append(c.Env, corev1.EnvVar{Name: v.name, Value: v.value})
		}
	})
}

// credentials mounts the Secrets that the registration agent stores for the add-on.
func credentials(pod *corev1.PodSpec, spec *addonv1alpha1.AddOnTemplateSpec, addOn string) error {
	for _, registration := range spec.Registration {
		switch registration.Type {
		case addonv1alpha1.RegistrationTypeKubeClient:
			mountSecret(pod, "hub-kubeconfig", names.AddOnHubKubeconfigSecret(addOn), hubKubeconfigPath)
		case addonv1alpha1.RegistrationTypeCustomSigner:
			if registration.CustomSigner == nil {
				return errors.New("a registration of type CustomSigner lacks customSigner")
			}
			signer := registration.CustomSigner.SignerName
			mountSecret(pod, "cert-"+strings.NewReplacer("/", "-", ".", "-").Replace(signer),
				names.AddOnSignerSecret(addOn, signer), mountRoot+strings.ReplaceAll(signer, "/", "-"))
		}
	}
	return nil
}

func mountSecret(pod *corev1.PodSpec, volume, secret, path string) {
	mount(pod, path, corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{
		Secret: &corev1.SecretVolumeSource{SecretName: secret},
	}})
}

// mount gives containers a volume. One of that name that the template has stays.
func mount(pod *corev1.PodSpec, path string, volume corev1.Volume) {
	if !slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == volume.Name }) {
		pod.Volumes = append(pod.Volumes, volume)
	}
	each(pod, func(c *corev1.Container) {
		if !slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == path }) {
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: volume.Name, MountPath: path})
		}
	})
}

// place says on which nodes the pods run.
func place(pod *corev1.PodSpec, placement *addonv1beta1.NodePlacement) {
	if placement == nil {
		return
	}
	if placement.NodeSelector != nil {
		pod.NodeSelector = placement.NodeSelector
	}
	if placement.Tolerations != nil {
		pod.Tolerations = placement.Tolerations
	}
}

// mirror replaces the registries of images.
func mirror(pod *corev1.PodSpec, values Values) {
	mirrors := values.Registries
	if len(values.Config.Registries) > 0 {
		mirrors = values.Config.Registries
	}
	each(pod, func(c *corev1.Container) { c.Image = mirrored(c.Image, mirrors) })
}

// mirrored returns an image by the last mirror that changes it.
func mirrored(image string, mirrors []addonv1beta1.ImageMirror) string {
	result := image
	for _, m := range mirrors {
		source, target := strings.TrimSuffix(m.Source, "/"), strings.TrimSuffix(m.Mirror, "/")
		rest, matches := strings.CutPrefix(image, source)
		if source == "" { // Every registry.
			rest, matches = "/"+image[strings.LastIndex(image, "/")+1:], true
		}
		if matches && target != "" {
			result = target + rest
		}
	}
	return result
}

// proxy sets the variables of the proxy in containers, and mounts the certificates
// that it is verified with.
func proxy(pod *corev1.PodSpec, values Values) {
	config := values.Config.ProxyConfig
	var variables []variable
	for _, v := range []variable{{"HTTP_PROXY", config.HTTPProxy}, {"HTTPS_PROXY", config.HTTPSProxy}, {"NO_PROXY", config.NoProxy}} {
		if v.value != "" {
			variables = append(variables, v, variable{strings.ToLower(v.name), v.value})
		}
	}
	if bundled(config) {
		variables = append(variables, variable{"CA_BUNDLE_FILE_PATH", proxyBundlePath + "/" + proxyBundleKey})
		mount(pod, proxyBundlePath, corev1.Volume{Name: "proxy-ca-bundle", VolumeSource: corev1.VolumeSource{
			ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: proxyBundleName(values.AddOn)}},
		}})
	}
	environment(pod, variables)
}

// bundled reports whether there is a proxy with certificates of its own.
func bundled(config addonv1beta1.ProxyConfig) bool {
	return len(config.CABundle) > 0 && config.HTTPProxy+config.HTTPSProxy != ""
}

func proxyBundleName(addOn string) string { return addOn + "-proxy-ca" }

// proxyBundle is the ConfigMap with the certificates of the proxy, nil without any.
func proxyBundle(values Values) *unstructured.Unstructured {
	if !bundled(values.Config.ProxyConfig) {
		return nil
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": proxyBundleName(values.AddOn), "namespace": values.Namespace},
		"data":     map[string]any{proxyBundleKey: string(values.Config.ProxyConfig.CABundle)},
	}}
}

// require sets the resources of the containers whose ids match; the last match counts.
func require(pod *corev1.PodSpec, requirements []addonv1beta1.ContainerResourceRequirements, prefix string) error {
	for _, r := range requirements {
		pattern, err := regexp.Compile("^" + strings.ReplaceAll(regexp.QuoteMeta(r.ContainerID), `\*`, ".*") + "$")
		if err != nil {
			return fmt.Errorf("containerID %q: %w", r.ContainerID, err)
		}
		each(pod, func(c *corev1.Container) {
			if pattern.MatchString(prefix + c.Name) {
				c.Resources = *r.Resources.DeepCopy()
			}
		})
	}
	return nil
}
