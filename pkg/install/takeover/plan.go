package takeover

import (
	"path"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apply"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/buildinfo"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/origin"
)

type crd = apiextensionsv1.CustomResourceDefinition

// Plan lists the steps of a take-over, in their order.
type Plan struct {
	// From names the installation that is replaced; empty if there is none.
	From string `json:"from,omitempty"`
	// Before are the steps before ours is installed, After those when it works.
	Before []Step `json:"before,omitempty"`
	After  []Step `json:"after,omitempty"`
	// Changes are the changes that the user has to accept.
	Changes []Change `json:"changes,omitempty"`
	// Refused are the reasons why the take-over would not start.
	Refused []string `json:"refused,omitempty"`
}

// Unaccepted are the names of the changes that the user has not accepted.
func (p Plan) Unaccepted() []string {
	var out []string
	for _, c := range p.Changes {
		if !c.Accepted {
			out = append(out, c.Name)
		}
	}
	return out
}

// action is the operation of a step on its objects.
type action string

const (
	// stop deletes Deployments and waits until their pods are gone.
	stop action = "stop"
	// handOver deletes Deployments and leaves their pods to ours, which adopt them.
	handOver action = "hand over"
	// release lets our operator write CRDs.
	release action = "release"
	// remove deletes objects.
	remove action = "delete"
	// sweep deletes what is left when the other steps are done.
	sweep action = "sweep"
)

// Step is one step.
type Step struct {
	// Title is what it does, Why the reason for its place in the order.
	Title string `json:"title"`
	Why   string `json:"why,omitempty"`
	// Objects are the objects of the step, as kind namespace/name.
	Objects []string `json:"objects,omitempty"`

	action  action
	objects []client.Object
}

// Plan returns the steps for what was found.
func (s *Survey) Plan(accepted []string) Plan {
	if s.Empty() {
		return Plan{}
	}
	p := Plan{From: s.from(), Changes: s.Changes(accepted)}
	var operators, controllers, handed, servers []client.Object
	if s.Found != nil {
		operators = deployments(s.Found.Operators, func(origin.Deployment) bool { return true })
		controllers = deployments(s.Found.Components, func(d origin.Deployment) bool { return !d.Answers() })
		handed = deployments(s.Found.Components, func(d origin.Deployment) bool { return d.Answers() && d.Replaced() })
		servers = deployments(s.Found.Components, func(d origin.Deployment) bool { return d.Answers() && !d.Replaced() })
	}
	p.Before = steps(
		newStep(stop, "Stop OCM's operator", "It would restore what the next steps delete.", operators),
		newStep(stop, s.stopTitle(), "Two controllers of the same objects would overwrite each other.", controllers),
		newStep(handOver, "Leave the pods of the webhook to this release", "They convert add-ons until ours do.", handed),
		newStep(release, "Let this release write the CRDs", "Their annotation has the version of OCM, which counts as newer.", s.released()),
	)
	p.After = steps(
		newStep(remove, "Delete the webhook configurations", "The admission policies check the same by now.", s.configurations()),
		newStep(stop, "Stop the webhook servers", "Nothing calls them any more.", servers),
		newStep(remove, "Forget the Helm release", "An upgrade of it would bring OCM back, and helm uninstall would remove the "+s.side.what+".", s.Helm),
	)
	sweeping := newStep(sweep, "Delete what only OCM's components used", "RBAC, ServiceAccounts, Services and certificates that this release did not apply.", nil)
	p.After = append(p.After, sweeping)
	return p
}

// stopTitle is the title of the step that has effect on users.
func (s *Survey) stopTitle() string {
	if s.side.what == "hub" {
		return "Stop OCM's controllers"
	}
	return "Stop OCM's agents"
}

// from names what is replaced.
func (s *Survey) from() string {
	if s.Found == nil {
		return "what is left of OCM's " + s.side.what
	}
	from := strings.TrimSpace("OCM " + s.Found.Version())
	for _, d := range s.Found.Operators {
		if d.Tool != "" {
			return from + ", installed by " + d.Tool
		}
	}
	return from
}

// steps leaves out those without objects.
func steps(all ...Step) []Step {
	var out []Step
	for _, step := range all {
		if len(step.objects) > 0 {
			out = append(out, step)
		}
	}
	return out
}

func newStep(what action, title, why string, objects []client.Object) Step {
	step := Step{Title: title, Why: why, action: what, objects: objects}
	for _, obj := range objects {
		step.Objects = append(step.Objects, nameOf(obj))
	}
	return step
}

func nameOf(obj client.Object) string {
	return strings.TrimSpace(obj.GetObjectKind().GroupVersionKind().Kind + " " + path.Join(obj.GetNamespace(), obj.GetName()))
}

func deployments(found []origin.Deployment, which func(origin.Deployment) bool) []client.Object {
	var out []client.Object
	for _, d := range found {
		if which(d) {
			out = append(out, &appsv1.Deployment{
				TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
				ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: d.Name},
			})
		}
	}
	return out
}

// kinds are the kinds of webhook configurations, as origin spells them.
func kinds() map[string]string {
	return map[string]string{
		"validatingwebhookconfiguration": "ValidatingWebhookConfiguration", "mutatingwebhookconfiguration": "MutatingWebhookConfiguration",
	}
}

func (s *Survey) configurations() []client.Object {
	if s.Found == nil {
		return nil
	}
	var out []client.Object
	for _, hook := range s.Found.Webhooks {
		kind, name, _ := strings.Cut(hook, "/")
		obj := &unstructured.Unstructured{}
		obj.SetAPIVersion("admissionregistration.k8s.io/v1")
		obj.SetKind(kinds()[kind])
		obj.SetName(name)
		out = append(out, obj)
	}
	return out
}

// apiRelease is the release of OCM whose CRDs ours are. Newer ones are left alone.
const apiRelease = "1.3"

// newer reports whether a newer release of OCM wrote a CRD than ours is of.
func newer(c *crd) bool {
	written, err := version.ParseGeneric(c.Annotations[names.AnnotationVersion])
	known := version.MustParseGeneric(apiRelease)
	return err == nil && (written.Major() > known.Major() || written.Major() == known.Major() && written.Minor() > known.Minor())
}

// released are the CRDs that our operators would leave alone because of the version
// that OCM's wrote onto them, although they are not newer than ours.
func (s *Survey) released() []client.Object {
	var out []client.Object
	for i := range s.CRDs {
		c := &s.CRDs[i]
		if newer(c) || !outranks(c) || apply.AppliedBy(c, s.side.manager) {
			continue
		}
		out = append(out, &crd{TypeMeta: metav1.TypeMeta{APIVersion: crdKind().GroupVersion().String(), Kind: crdKind().Kind}, ObjectMeta: metav1.ObjectMeta{Name: c.Name}})
	}
	return out
}

// outranks reports whether the version on a CRD counts as newer than this release.
func outranks(c *crd) bool {
	written, err := version.ParseGeneric(c.Annotations[names.AnnotationVersion])
	return err == nil && version.MustParseGeneric(buildinfo.Version).LessThan(written)
}

func crdKind() schema.GroupVersionKind {
	return apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition")
}
