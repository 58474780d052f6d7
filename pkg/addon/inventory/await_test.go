package inventory_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/inventory"
)

func TestAwait(t *testing.T) {
	t.Parallel()
	away := errors.New("away")
	waiting := []inventory.Registration{{Cluster: "c1", AddOn: "a1", Message: "m"}}
	type answer struct {
		pending []inventory.Registration
		err     error
	}
	for name, tc := range map[string]struct {
		answers []answer
		said    []string
		last    int
		err     error
	}{
		"nothing is pending":         {answers: []answer{{}}},
		"the first answer fails":     {answers: []answer{{err: away}}, err: away},
		"a later answer fails":       {answers: []answer{{pending: waiting}, {err: away}, {}}, said: []string{"c1/a1: m", "trying again: away"}},
		"the registration stays":     {answers: []answer{{pending: waiting}}, said: []string{"c1/a1: m", "c1/a1: m", "c1/a1: m"}, last: 1, err: context.DeadlineExceeded},
		"the server does not return": {answers: []answer{{pending: waiting}, {err: away}}, said: []string{"c1/a1: m", "trying again: away", "trying again: away"}, last: 1, err: context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
				defer cancel()
				var said []string
				calls := 0
				last, err := inventory.Await(ctx, clock.RealClock{}, func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) },
					func(context.Context) ([]inventory.Registration, error) {
						a := tc.answers[min(calls, len(tc.answers)-1)]
						calls++
						return a.pending, a.err
					})
				if !errors.Is(err, tc.err) || len(last) != tc.last {
					t.Errorf("got %v, %v", last, err)
				}
				if diff := cmp.Diff(tc.said, said); diff != "" {
					t.Errorf("said (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestSummary(t *testing.T) {
	t.Parallel()
	var list []inventory.Registration
	for i := range 5 {
		list = append(list, inventory.Registration{Cluster: "c", AddOn: fmt.Sprint("a", i), Message: "m"})
	}
	if got, want := inventory.Summary(list), "c/a0: m; c/a1: m; c/a2: m; 2 more"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
