package authorizer_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/authorizer"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/denial"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/policy"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/subject"
)

// Explain implements what a Verifier has for explanations.
func (c *chain) Explain(ctx context.Context, token string, step func(subject.Step)) (subject.Identity, error) {
	step(subject.Step{Name: "signature"})
	return c.Verify(ctx, token)
}

// Consider implements what a Decider has for explanations.
func (c *chain) Consider(subject.Identity) []policy.Considered {
	return []policy.Considered{{Rule: "r", Matched: true}}
}

// recorder stores an explanation.
type recorder struct{ steps []string }

func (s *recorder) Checked(step subject.Step) { s.steps = append(s.steps, "check "+step.Name) }

func (s *recorder) Considered(rule policy.Considered) { s.steps = append(s.steps, "rule "+rule.Rule) }

func (s *recorder) Granted(grant policy.Grant) { s.steps = append(s.steps, "grant "+grant.Target.Name) }

// TestAnExplanationIsTheDecision: whatever stage refuses, an explanation asks the
// same stages in the same order and ends as the decision does; it is not audited.
func TestAnExplanationIsTheDecision(t *testing.T) {
	t.Parallel()
	steps := []string{"check signature", "rule r", "grant reader"}
	for stage, want := range map[string][]string{"verify": steps[:1], "decide": steps[:2], "review c1": steps, "exchange": steps, "": steps} {
		c := &chain{identity: subject.Identity{Cluster: "c1"}, fail: map[string]error{stage: denial.New(denial.NotAllowed, "no")}}
		a := newAuthorizer(t, c, nil)
		a.Swap(c.snapshot())
		decision, refused := a.Authorize(t.Context(), authorizer.Request{Token: "t"})
		asked := c.asked
		c.asked, c.events = nil, nil
		trace := &recorder{}
		explained, err := a.Explain(t.Context(), authorizer.Request{Token: "t"}, trace)
		if (err == nil) != (refused == nil) || err != nil && denial.Of(err).Reason != denial.Of(refused).Reason {
			t.Errorf("%q refuses: decided %v, explained %v", stage, refused, err)
		}
		if diff := cmp.Diff(asked, c.asked); diff != "" {
			t.Errorf("%q refuses: %s", stage, diff)
		}
		if diff := cmp.Diff(decision.Grant, explained.Grant); diff != "" || decision.Token.Value != explained.Token.Value {
			t.Errorf("%q refuses: %s", stage, diff)
		}
		if diff := cmp.Diff(want, trace.steps); diff != "" {
			t.Errorf("%q refuses: %s", stage, diff)
		}
		if len(c.events) != 0 {
			t.Errorf("%q refuses: audited %+v", stage, c.events)
		}
	}
}
