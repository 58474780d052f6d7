package tokens_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apis/tokenexchange/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/diagnose/tokens"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/finding"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/diagnosis"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/config"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/policy"
)

// rules are those of objects, or an error.
type rules struct {
	policies []v1alpha1.TokenExchangePolicy
	err      error
}

// String implements tokens.Rules.
func (rules) String() string { return "the test" }

// Command implements tokens.Rules.
func (rules) Command(args ...string) string { return "ocm " + strings.Join(args, " ") }

// Config implements tokens.Rules.
func (r rules) Config(_ context.Context, opts config.Options) (*config.Config, error) {
	return config.FromHub(config.Objects{Policies: r.policies}, opts), r.err
}

// allowing returns rules that map workloads of cluster1 to one ServiceAccount of the hub.
func allowing() rules {
	p := v1alpha1.TokenExchangePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster1", Name: v1alpha1.Name}}
	p.Spec.Audiences = []string{"hub"}
	p.Spec.Allow = []v1alpha1.Rule{{
		Namespaces: []string{"ns"}, ServiceAccounts: []string{"app"},
		MapTo: v1alpha1.Mapping{Namespace: "target", Name: "app"},
	}}
	return rules{policies: []v1alpha1.TokenExchangePolicy{p}}
}

func self() policy.Account {
	return policy.Account{Namespace: names.HubNamespace, Name: names.TokenAuthorizer}
}

func manager() client.Object {
	return &operatorv1.ClusterManager{ObjectMeta: metav1.ObjectMeta{Name: names.ClusterManagerName}}
}

// TestUsable: rules that cannot be read fail the check, and none at all are a warning.
func TestUsable(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		rules rules
		want  finding.Outcome
	}{
		"unreadable": {rules{err: errors.New("no file")}, finding.Bad("ocm exchange policy lint", "no file")},
		"none":       {rules{}, finding.Caution("ocm exchange allow CLUSTER NAMESPACE/NAME --to ...", "the test has no rules: every request is denied")},
		"some":       {allowing(), finding.Good("the test has rules for 1 cluster(s)")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, steps := range [][]finding.Step{
				tokens.Steps(diagnosis.Scope(t, manager()), tc.rules, self()), tokens.FileSteps(diagnosis.Scope(t), tc.rules, self()),
			} {
				if got := diagnosis.Outcome(t, steps, "its rules can be used"); got != tc.want {
					t.Errorf("%+v, want %+v", got, tc.want)
				}
			}
		})
	}
}

// TestTargets: rules that name a missing ServiceAccount are a warning, and the permission to issue
// its tokens is checked all the same.
func TestTargets(t *testing.T) {
	t.Parallel()
	steps := tokens.Steps(diagnosis.Scope(t, manager()), allowing(), self())
	if got := diagnosis.Outcome(t, steps, "the ServiceAccounts that rules lead to exist"); got.Status != finding.Warning || got.Message != "there is no ServiceAccount target/app" {
		t.Errorf("%+v", got)
	}
	if got := diagnosis.Outcome(t, steps, "it may issue their tokens"); got.Status != finding.Failed || !strings.Contains(got.Message, "create serviceaccounts/token target/app") {
		t.Errorf("%+v", got)
	}
	if got := diagnosis.Outcome(t, steps, "clusters publish their keys"); got.Status != finding.Failed || got.Try != "on the managed cluster: ocm issuer publish" {
		t.Errorf("%+v", got)
	}
}
