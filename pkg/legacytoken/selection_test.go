package legacytoken_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/legacytoken"
)

func tokensOf(i *legacytoken.Inventory) []string {
	var out []string
	for _, token := range i.Tokens {
		out = append(out, token.String())
	}
	return out
}

func TestChoose(t *testing.T) {
	t.Parallel()
	name := func(n string) types.NamespacedName { return types.NamespacedName{Namespace: "ns", Name: n} }
	i := &legacytoken.Inventory{Tokens: []*legacytoken.Token{{Namespace: "ns", Name: "a"}, {Namespace: "ns", Name: "b"}, {Namespace: "ns", Name: "c"}}}
	err := i.Choose([]types.NamespacedName{name("c"), name("x"), name("a")})
	if diff := cmp.Diff([]string{"ns/c", "ns/a"}, tokensOf(i)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if missing, ok := errors.AsType[*legacytoken.MissingError](err); !ok || missing.Error() != "there is no legacy token Secret ns/x" {
		t.Errorf("got %v", err)
	}
	if err := i.Choose([]types.NamespacedName{name("a")}); err != nil {
		t.Error(err)
	}
}

func TestLimit(t *testing.T) {
	t.Parallel()
	some := legacytoken.Assessments()
	for n, want := range [][]string{{"ns/a", "ns/b"}, {"ns/b"}} {
		i := &legacytoken.Inventory{Tokens: []*legacytoken.Token{{Namespace: "ns", Name: "a", Assessment: some[0]}, {Namespace: "ns", Name: "b", Assessment: some[1]}}}
		i.Limit(some[1 : 1+n])
		if diff := cmp.Diff(want, tokensOf(i)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func TestScopeOf(t *testing.T) {
	t.Parallel()
	scope := legacytoken.ScopeOf([]types.NamespacedName{{Namespace: "b", Name: "1"}, {Namespace: "a", Name: "2"}, {Namespace: "b", Name: "3"}})
	if diff := cmp.Diff([]string{"b", "a"}, scope.Namespaces); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestTask makes a rejection of an object that changed, and acts on nothing else than planned.
func TestTask(t *testing.T) {
	t.Parallel()
	failed := errors.New("failed")
	apply := legacytoken.Plan{Action: legacytoken.ActionApply}
	for name, tc := range map[string]struct {
		plan  legacytoken.Plan
		err   error
		want  legacytoken.Action
		acted bool
		fails error
	}{
		"nothing to do":  {legacytoken.Plan{}, nil, legacytoken.ActionNone, false, nil},
		"rejected":       {legacytoken.Plan{Action: legacytoken.ActionReject}, nil, legacytoken.ActionReject, false, nil},
		"applied":        {apply, nil, legacytoken.ActionApply, true, nil},
		"changed":        {apply, legacytoken.ErrChanged, legacytoken.ActionReject, true, nil},
		"another backup": {apply, fmt.Errorf("file: %w", legacytoken.ErrOtherBackup), legacytoken.ActionReject, true, nil},
		"failed":         {apply, failed, legacytoken.ActionApply, true, failed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			acted := false
			task := legacytoken.NewTask(&legacytoken.Token{Namespace: "ns", Name: "a"}, tc.plan, func(context.Context) error {
				acted = true
				return tc.err
			})
			got, err := task.Do(t.Context())
			if got.Action != tc.want || acted != tc.acted || !errors.Is(err, tc.fails) {
				t.Errorf("got %v, %v, acted %v", got, err, acted)
			}
			if tc.want == legacytoken.ActionReject && acted && got.Reason != tc.err.Error() {
				t.Errorf("the reason is %q", got.Reason)
			}
		})
	}
}

// TestTasksOfUnusedToken returns no action for a token that feeds no pull secret.
func TestTasksOfUnusedToken(t *testing.T) {
	t.Parallel()
	tasks, err := (&legacytoken.Migration{}).Tasks(t.Context(), &legacytoken.Token{Namespace: "ns", Name: "a"}, nil)
	if err != nil || len(tasks) != 1 || tasks[0].Plan.Action != legacytoken.ActionNone || tasks[0].Plan.Reason != "it feeds no pull secret" {
		t.Errorf("got %v, %v", tasks, err)
	}
}
