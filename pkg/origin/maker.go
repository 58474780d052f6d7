package origin

import (
	"fmt"
	"path"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apply"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// maker says whose program a Deployment runs.
type maker int

const (
	// unknown is a program that has no sign of either.
	unknown maker = iota
	ours
	theirs
)

// ownRoles is the first argument of every role of our binary.
const ownRoles = "controller"

// theirOperator is the image name of OCM's operators. Distributions add a suffix.
const theirOperator = "registration-operator"

// theirPrograms are the programs in OCM's images, which its Deployments name as
// the first argument. See docs/reference/wire-contract.md#operator-images.
func theirPrograms() []string {
	return []string{"/" + theirOperator, "/registration", "/work", "/placement", "/addon", "/server"}
}

// makerOf returns who created a Deployment. A container of this project decides, also
// next to a container of OCM, which an earlier takeover left. The annotation of this
// project's operators counts last, because an upstream operator that takes over an
// object retains it.
func makerOf(d *appsv1.Deployment) maker {
	made := runsIn(&d.Spec.Template.Spec)
	if made == unknown && stamped(d.Annotations) {
		made = ours
	}
	return made
}

// runsIn returns whose programs the pods of a spec run.
func runsIn(spec *corev1.PodSpec) maker {
	made := unknown
	for i := range spec.Containers {
		switch runs(&spec.Containers[i]) {
		case ours:
			return ours
		case theirs:
			made = theirs
		case unknown:
		}
	}
	return made
}

func runs(c *corev1.Container) maker {
	words := slices.Concat(c.Command, c.Args)
	i := slices.Index(words, ownRoles)
	switch {
	// OCM's registration controller has the word too: "/registration controller".
	case i == 0, i > 0 && !slices.Contains(theirPrograms(), words[i-1]):
		return ours
	case len(words) > 0 && slices.Contains(theirPrograms(), words[0]),
		strings.HasPrefix(imageName(c.Image), theirOperator):
		return theirs
	}
	return unknown
}

// imageName is the last element of an image's path, without tag and digest.
func imageName(image string) string {
	name, _, _ := strings.Cut(path.Base(image), "@")
	name, _, _ = strings.Cut(name, ":")
	return name
}

func stamped(annotations map[string]string) bool {
	for key := range annotations {
		if strings.HasPrefix(key, apply.HashAnnotationPrefix) {
			return true
		}
	}
	return false
}

// Deployment is one of another product.
type Deployment struct {
	Namespace, Name string
	// Image is the image of its first container.
	Image string
	// Tool is the tool that installed it, if known. Restored is true if that tool
	// restores its objects after a deletion.
	Tool     string
	Restored bool
	// Release is the Helm release that it is part of; empty for none.
	Release types.NamespacedName
	// Args are the arguments of its first container.
	Args []string
}

func describe(d *appsv1.Deployment) Deployment {
	out := Deployment{Namespace: d.Namespace, Name: d.Name, Release: HelmRelease(d)}
	out.Tool, out.Restored = Tool(d)
	if containers := d.Spec.Template.Spec.Containers; len(containers) > 0 {
		out.Image = containers[0].Image
		out.Args = containers[0].Args
	}
	return out
}

// webhookServer is the second argument of OCM's programs that only answer the API
// server. See docs/reference/wire-contract.md#operator-images.
const webhookServer = "webhook-server"

// Answers reports whether it is a webhook server, which writes nothing by itself.
func (d Deployment) Answers() bool { return slices.Contains(d.Args, webhookServer) }

// Replaced reports whether ours has the same name, so that applying ours would merge
// the two.
func (d Deployment) Replaced() bool {
	return slices.Contains(deployed(), d.Name) || strings.HasSuffix(d.Name, "-registration-agent") || strings.HasSuffix(d.Name, "-work-agent")
}

// Version is the tag of its image; empty if there is none.
func (d Deployment) Version() string {
	image, _, _ := strings.Cut(path.Base(d.Image), "@")
	_, tag, _ := strings.Cut(image, ":")
	return tag
}

// Theirs reports whether pods of this spec run a program of OCM and none of ours.
func Theirs(spec *corev1.PodSpec) bool { return runsIn(spec) == theirs }

// Ours reports whether pods of this spec run a program of ours.
func Ours(spec *corev1.PodSpec) bool { return runsIn(spec) == ours }

// TheirImage reports whether an image is one of OCM's. Distributions add a suffix.
func TheirImage(image string) bool {
	return slices.ContainsFunc([]string{theirOperator, "registration", "work", "placement", "addon-manager"}, func(name string) bool {
		return imageName(image) == name || strings.HasPrefix(imageName(image), name+"-rhel")
	})
}

// HelmRelease is the Helm release that an object is part of, by the annotations that
// Helm gives to everything that it installs; empty for none.
func HelmRelease(obj metav1.Object) types.NamespacedName {
	return types.NamespacedName{
		Namespace: obj.GetAnnotations()["meta.helm.sh/release-namespace"], Name: obj.GetAnnotations()["meta.helm.sh/release-name"],
	}
}

// Tool returns the tool that installed an object, from the marks that package managers
// set, and whether the tool restores it; empty without a mark. Restoring tools are
// checked first: they may use Helm.
func Tool(obj metav1.Object) (name string, restores bool) {
	application, _, tracked := strings.Cut(obj.GetAnnotations()["argocd.argoproj.io/tracking-id"], ":")
	switch labels := obj.GetLabels(); {
	case labels["helm.toolkit.fluxcd.io/name"] != "":
		return fmt.Sprintf("the HelmRelease %s/%s of Flux", labels["helm.toolkit.fluxcd.io/namespace"], labels["helm.toolkit.fluxcd.io/name"]), true
	case labels["kustomize.toolkit.fluxcd.io/name"] != "":
		return fmt.Sprintf("the Kustomization %s/%s of Flux", labels["kustomize.toolkit.fluxcd.io/namespace"], labels["kustomize.toolkit.fluxcd.io/name"]), true
	case tracked:
		return "the Application " + application + " of Argo CD", true
	case labels["olm.owner"] != "":
		return "the Operator Lifecycle Manager, ClusterServiceVersion " + labels["olm.owner"], true
	case labels["installer.name"] != "":
		return fmt.Sprintf("the operator of %s/%s", labels["installer.namespace"], labels["installer.name"]), true
	case HelmRelease(obj).Name != "":
		return "the Helm release " + HelmRelease(obj).String(), false
	case labels["app.kubernetes.io/managed-by"] == "Helm":
		return "Helm", false
	}
	return "", false
}

// String returns "Deployment namespace/name (image, installed by tool)".
func (d Deployment) String() string {
	s := fmt.Sprintf("Deployment %s/%s (%s", d.Namespace, d.Name, d.Image)
	if d.Tool != "" {
		s += ", installed by " + d.Tool
	}
	return s + ")"
}

// deployed are the Deployments of a hub that our hub runs as well, under the
// same names: they would be replaced and not deleted.
func deployed() []string {
	return []string{
		names.HubRegistrationDeployment(names.ClusterManagerName),
		names.HubAddOnManagerDeployment(names.ClusterManagerName),
		names.HubAddOnWebhookDeployment(names.ClusterManagerName),
	}
}
