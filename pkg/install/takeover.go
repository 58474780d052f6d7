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

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/access"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/takeover"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/origin"
)

// TakeOver has an installation of OCM replaced by ours.
type TakeOver struct {
	// Accepted are the names of the changes that the user accepts.
	Accepted []string
}

// Replacement is a take-over that was checked.
type Replacement struct {
	survey *takeover.Survey
	plan   takeover.Plan
}

// Survey surveys what is to be replaced, plans the take-over, and settles the facts that it
// deals with. Without a take-over it returns nil.
func (t *TakeOver) Survey(f *Facts, survey func() (*takeover.Survey, error)) (*Replacement, error) {
	if t == nil {
		return nil, nil //nolint:nilnil // Nothing is replaced.
	}
	s, err := survey()
	if err != nil {
		return nil, err
	}
	r := &Replacement{survey: s, plan: s.Plan(t.Accepted)}
	r.settle(f)
	return r, nil
}

// From names the installation that is replaced.
func (r *Replacement) From() string {
	if r == nil {
		return ""
	}
	return r.plan.From
}

// settle drops the facts that the take-over itself deals with: the other product, and
// its version on the operator's CRD.
func (r *Replacement) settle(f *Facts) {
	if !r.survey.Empty() {
		f.Release = ""
	}
	f.Other = nil
}

// Findings are the reasons why the take-over must not start.
func (r *Replacement) Findings() []Finding {
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

// BeginTakeOver runs the steps that precede our own objects, if over is not nil.
func (r *Runner) BeginTakeOver(ctx context.Context, over *Replacement) error {
	if over == nil {
		return nil
	}
	return r.move(ctx, over, over.plan.Before)
}

// FinishTakeOver removes what is replaced, once ours works, if over is not nil.
func (r *Runner) FinishTakeOver(ctx context.Context, over *Replacement) error {
	if over == nil {
		return nil
	}
	return r.move(ctx, over, over.plan.After)
}

func (r *Runner) move(ctx context.Context, over *Replacement, steps []takeover.Step) error {
	for _, step := range steps {
		err := r.Step(ctx, step.Title, func(ctx context.Context, say Say) error {
			mover := takeover.Mover{Client: r.Client, Waiter: r.Waiter(say), Say: say, FieldManager: FieldManager}
			return mover.Do(ctx, over.survey, step)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Plan is the plan with what would stop it.
func (p Prepared) Plan(skip []string) takeover.Plan {
	if p.Over == nil {
		return takeover.Plan{}
	}
	plan := p.Over.plan
	_, err := Sift(slices.DeleteFunc(slices.Clone(p.Findings), func(f Finding) bool { return f.Check == CheckChanges }), skip)
	if refused, ok := err.(*PreflightError); ok { //nolint:errorlint // Sift returns nothing else.
		for _, f := range refused.Findings {
			plan.Refused = append(plan.Refused, fmt.Sprintf("[%s] %s", f.Check, f.Message))
		}
	}
	return plan
}

// Prepared is an installation that was checked.
type Prepared struct {
	Objects  []client.Object
	Findings []Finding
	Over     *Replacement
}

// CRDs are the CRDs among objects.
func CRDs(objs []client.Object) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, obj := range objs {
		if u, ok := obj.(*unstructured.Unstructured); ok && u.GetKind() == "CustomResourceDefinition" {
			out = append(out, u)
		}
	}
	return out
}

// Rights are the additional permissions that a take-over needs.
func (t *TakeOver) Rights() []access.Right {
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

// Image is the image of a component that has live now. One of OCM's is replaced.
func (t *TakeOver) Image(w Workload, live string) string {
	if t != nil && origin.TheirImage(live) {
		live = ""
	}
	return w.ImageOver(live)
}

// Mode is the install mode of an agent that has live now.
func (t *TakeOver) Mode(live operatorv1.InstallMode) operatorv1.InstallMode {
	if t != nil && live == operatorv1.InstallModeSingleton {
		return operatorv1.InstallModeDefault
	}
	return live
}

// Foremost moves the objects of a kind to the front: our operator must not see the
// images of OCM in its resource.
func (t *TakeOver) Foremost(objs []client.Object, kind string) []client.Object {
	if t == nil {
		return objs
	}
	first := slices.DeleteFunc(slices.Clone(objs), func(obj client.Object) bool { return obj.GetObjectKind().GroupVersionKind().Kind != kind })
	return append(first, Without(objs, kind)...)
}
