package explanation_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/scheme"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/denial"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/explanation"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/rulestore"
)

// TestDeniedToken records the step that denies a token once.
func TestDeniedToken(t *testing.T) {
	t.Parallel()
	hub := fake.NewClientBuilder().WithScheme(scheme.New()).
		WithIndex(&corev1.ConfigMap{}, "metadata.name", func(o client.Object) []string { return []string{o.GetName()} }).Build()
	chain, err := explanation.NewChain(t.Context(), rulestore.OnHub(hub), clock.RealClock{}, t.Errorf)
	if err != nil {
		t.Fatal(err)
	}
	e := chain.Explain(t.Context(), "no token")
	if e.Allowed || e.Err() == nil || e.Status != 401 || e.Token().Value != "" {
		t.Errorf("got %+v", e)
	}
	failed := 0
	for _, s := range e.Steps {
		if s.Outcome == explanation.Failed {
			failed++
		}
	}
	if failed != 1 || e.Steps[len(e.Steps)-1].Reason != e.Reason {
		t.Errorf("the steps are %+v", e.Steps)
	}
	if got := chain.Audience(t.Context(), "no token"); got != "" {
		t.Errorf("an unknown cluster requires audience %s", got)
	}
}

func TestRecord(t *testing.T) {
	t.Parallel()
	e := &explanation.Explanation{}
	e.Record("first", nil, "detail")
	e.Record("second", denial.New(denial.TargetMissing, "no account"), "detail")
	want := []explanation.Step{
		{Check: "first", Outcome: explanation.Passed, Detail: "detail"},
		{Check: "second", Outcome: explanation.Failed, Reason: string(denial.TargetMissing), Detail: "no account"},
	}
	if diff := cmp.Diff(want, e.Steps); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
