package install

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/bootstrap"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/access"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/buildinfo"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/takeover"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/origin"
)

// TakeOver has an installation of OCM replaced by ours.
type TakeOver struct {
	// Accepted are the names of the changes that the user accepts.
	Accepted []string
}

// replacement is a take-over that was checked.
type replacement struct {
	survey *takeover.Survey
	plan   takeover.Plan
}

// newReplacement makes the plan for what a survey found.
func (t *TakeOver) newReplacement(s *takeover.Survey, err error) (*replacement, error) {
	if err != nil {
		return nil, err
	}
	return &replacement{survey: s, plan: s.Plan(t.Accepted)}, nil
}

// from is what is replaced.
func (r *replacement) from() string {
	if r == nil {
		return ""
	}
	return r.plan.From
}

// settles drops the facts that the take-over itself deals with: the other product, and
// its version on the operator's CRD.
func (r *replacement) settles(f *Facts) {
	if !r.survey.Empty() {
		f.Release = ""
	}
	f.Other = nil
}

// findings are the reasons why the take-over must not start.
func (r *replacement) findings() []Finding {
	if r == nil {
		return nil
	}
	var findings []Finding
	for _, p := range r.survey.Problems() {
		findings = append(findings, Finding{Check: CheckOther, Severity: Fatal, Message: p.Message, Try: p.Try})
	}
	var lines []string
	for _, c := range r.plan.Changes {
		if !c.Accepted {
			lines = append(lines, c.Name+": "+c.Message)
		}
	}
	if len(lines) > 0 {
		findings = append(findings, Finding{
			Check: CheckChanges, Severity: Fatal,
			Message: "the take-over changes what OCM does now:\n      " + strings.Join(lines, "\n      "),
			Try:     "to accept that, add --accept-changes=" + strings.Join(r.plan.Unaccepted(), ","),
		})
	}
	return findings
}

// perform performs steps of a take-over.
func (r *Runner) perform(ctx context.Context, over *replacement, steps func(takeover.Plan) []takeover.Step) error {
	if over == nil {
		return nil
	}
	for _, step := range steps(over.plan) {
		err := r.Step(ctx, step.Title, func(ctx context.Context, say Say) error {
			mover := takeover.Mover{Client: r.Client, Waiter: r.waiter(say), Say: say, FieldManager: FieldManager}
			return mover.Do(ctx, over.survey, step)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func before(p takeover.Plan) []takeover.Step { return p.Before }
func after(p takeover.Plan) []takeover.Step  { return p.After }

// PlanInit returns what Init would do to take over a hub, with everything that would
// stop it. It writes nothing.
func (r *Runner) PlanInit(ctx context.Context, h Hub, info bootstrap.ClusterInfo) (takeover.Plan, error) {
	prepared, err := r.prepareHub(ctx, h, info)
	return prepared.described(r.Skip), err
}

// PlanJoin is PlanInit for Join.
func (r *Runner) PlanJoin(ctx context.Context, k Klusterlet) (takeover.Plan, error) {
	prepared, err := r.prepareAgent(ctx, k, nil)
	return prepared.described(r.Skip), err
}

// described is the plan with what would stop it.
func (p prepared) described(skip []string) takeover.Plan {
	if p.over == nil {
		return takeover.Plan{}
	}
	plan := p.over.plan
	_, err := sift(slices.DeleteFunc(slices.Clone(p.findings), func(f Finding) bool { return f.Check == CheckChanges }), skip)
	if refused, ok := err.(*PreflightError); ok { //nolint:errorlint // sift returns nothing else.
		for _, f := range refused.Findings {
			plan.Refused = append(plan.Refused, fmt.Sprintf("[%s] %s", f.Check, f.Message))
		}
	}
	return plan
}

// prepared is an installation that was checked.
type prepared struct {
	objs     []client.Object
	findings []Finding
	over     *replacement
}

// hubCRDs are the CRDs of our hub.
func hubCRDs(objs []client.Object) ([]*unstructured.Unstructured, error) {
	hub, err := manifests.RenderHubCRDs(manifests.Hub{Name: names.ClusterManagerName, Namespace: names.HubNamespace, Version: buildinfo.Version})
	return append(hub, rendered(objs)...), err
}

// agentCRDs are those of our agent.
func agentCRDs(objs []client.Object) ([]*unstructured.Unstructured, error) {
	agent, err := manifests.RenderKlusterletCRDs(manifests.Klusterlet{Name: names.KlusterletName, Version: buildinfo.Version})
	return append(agent, rendered(objs)...), err
}

// rendered are the CRDs among objects.
func rendered(objs []client.Object) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, obj := range objs {
		if u, ok := obj.(*unstructured.Unstructured); ok && u.GetKind() == "CustomResourceDefinition" {
			out = append(out, u)
		}
	}
	return out
}

// rights are what a take-over needs besides.
func (t *TakeOver) rights() []access.Right {
	if t == nil {
		return nil
	}
	return []access.Right{
		{Verb: "delete", Resource: schema.GroupResource{Group: "apps", Resource: "deployments"}},
		{Verb: "delete", Resource: schema.GroupResource{Group: "admissionregistration.k8s.io", Resource: "validatingwebhookconfigurations"}},
		{Verb: "delete", Resource: schema.GroupResource{Group: "rbac.authorization.k8s.io", Resource: "clusterroles"}},
		{Verb: "delete", Resource: schema.GroupResource{Resource: "secrets"}},
	}
}

// image is the image of a component that has live now. One of OCM's is replaced.
func (t *TakeOver) image(w Workload, live string) string {
	if t != nil && origin.TheirImage(live) {
		live = ""
	}
	return w.image(live)
}

// mode is the install mode of an agent that has live now.
func (t *TakeOver) mode(live operatorv1.InstallMode) operatorv1.InstallMode {
	if t != nil && live == operatorv1.InstallModeSingleton {
		return operatorv1.InstallModeDefault
	}
	return live
}

// foremost moves the objects of a kind to the front: our operator must not see the
// images of OCM in its resource.
func (t *TakeOver) foremost(objs []client.Object, kind string) []client.Object {
	if t == nil {
		return objs
	}
	first := slices.DeleteFunc(slices.Clone(objs), func(obj client.Object) bool { return obj.GetObjectKind().GroupVersionKind().Kind != kind })
	return append(first, without(objs, kind)...)
}

// awaitHub waits until everything works that the steps after it rely on.
func (r *Runner) awaitHub(ctx context.Context, objs []client.Object) error {
	if err := r.await(ctx, "Waiting for the hub operator", deploymentReady(names.OperatorNamespace, names.ClusterManagerOperator)); err != nil {
		return err
	}
	return r.await(ctx, "Waiting for the hub components", hubTargets(objs)...)
}

// awaitReplaced waits until the agents of ours work with the hub.
func (r *Runner) awaitReplaced(ctx context.Context) error {
	if err := r.AwaitAgent(ctx); err != nil {
		return err
	}
	return r.AwaitJoined(ctx)
}
