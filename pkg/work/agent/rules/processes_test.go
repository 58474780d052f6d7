package rules_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	testingclock "k8s.io/utils/clock/testing"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/agent/rules"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/status"
)

// world counts the processes that it starts.
type world struct {
	*rules.Processes

	clock   *testingclock.FakeClock
	started atomic.Int32
}

func newWorld(t *testing.T, what string) *world {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{clock: testingclock.NewFakeClock(time.Unix(1, 0))}
	w.Processes = rules.New(func(ctx context.Context) *exec.Cmd {
		w.started.Add(1)
		cmd := exec.CommandContext(ctx, self)
		cmd.Env = []string{role + "=" + what, "GOMAXPROCS=2", "GOCOVERDIR=" + os.Getenv("GOCOVERDIR")}
		return cmd
	}, w.clock)
	t.Cleanup(w.Close)
	return w
}

func object() *unstructured.Unstructured {
	list := make([]any, 50000)
	for i := range list {
		list[i] = int64(i)
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "one"},
		"data": map[string]any{"text": strings.Repeat("a", 1<<18), "count": int64(3), "list": list},
	}}
}

func rule(expression string) []workv1.ConditionRule {
	return []workv1.ConditionRule{{Condition: "Good", Type: workv1.CelConditionExpressionsType, CelExpressions: []string{expression}}}
}

// TestAsInProcess compares what processes answer with what package status does.
func TestAsInProcess(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "serve")
	direct := status.NewRules()
	for _, expression := range []string{"object.data.count == 3", "object.data.count / 2 == 1", "object.nothing", "true ||", `object.data.text.size() > 5`} {
		want := direct.Evaluate(t.Context(), object(), rule(expression))
		if diff := cmp.Diff(want, w.Evaluate(t.Context(), object(), rule(expression))); diff != "" || len(want) != 1 {
			t.Errorf("%s (-want +got)\n%s", expression, diff)
		}
	}
	if got := w.Evaluate(t.Context(), object(), nil); got != nil {
		t.Errorf("without rules: %v", got)
	}
	if n := w.started.Load(); n != 1 {
		t.Errorf("%d processes for one rule after another", n)
	}
}

// costly are rules within the limits of CEL that take memory, or time, in one step or in
// many that CEL counts as cheap.
var costly = map[string]string{
	"memory in one step": `object.data.text.replace("", object.data.text).size() > 0`,
	"time":               `[1,2,3,4,5,6,7,8,9].all(a, [1,2,3,4,5,6,7,8,9].all(b, [1,2,3,4,5,6,7,8,9].all(c, [1,2,3,4,5,6,7,8,9].all(d, object.data == object.data))))`,
}

// TestLimits has rules that need too much: their process ends, others are answered by
// another one, and they are not evaluated again before their rejection ends.
func TestLimits(t *testing.T) {
	t.Parallel()
	for name, expression := range costly {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "serve")
			for range 2 {
				got := w.Evaluate(t.Context(), object(), rule(expression))
				if len(got) != 1 || got[0].Status != metav1.ConditionFalse || got[0].Reason != workv1.ConditionRuleExpressionError ||
					!strings.Contains(got[0].Message, "1s of CPU time or 256 MiB of memory; simplify them") {
					t.Fatalf("got %+v", got)
				}
			}
			if n := w.started.Load(); n != 1 {
				t.Errorf("%d processes for a rule that was rejected once", n)
			}
			if got := w.Evaluate(t.Context(), object(), rule("true")); got[0].Status != metav1.ConditionTrue {
				t.Errorf("another rule: %+v", got)
			}
			w.clock.Step(time.Hour)
			w.Evaluate(t.Context(), object(), rule(expression))
			// An idle process might have ended before: a second one decides.
			if n := w.started.Load(); n != 3 {
				t.Errorf("%d processes after the end of the rejection", n)
			}
		})
	}
}

// TestOthersGoOn evaluates a costly rule and others at the same time.
func TestOthersGoOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "serve")
	var all sync.WaitGroup
	all.Go(func() { w.Evaluate(t.Context(), object(), rule(costly["time"])) })
	for i := range 20 {
		all.Go(func() {
			if got := w.Evaluate(t.Context(), object(), rule(fmt.Sprintf("object.data.count < %d", 10+i))); got[0].Status != metav1.ConditionTrue {
				t.Errorf("got %+v", got)
			}
		})
	}
	all.Wait()
}

// TestNoProcess has processes that end at once, and an agent that stops.
func TestNoProcess(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "fail")
	got := w.Evaluate(t.Context(), object(), rule("true"))
	if len(got) != 1 || got[0].Status != metav1.ConditionUnknown || got[0].Reason != workv1.ConditionRuleInternalError || !strings.Contains(got[0].Message, "exit status 1") {
		t.Errorf("got %+v", got)
	}
	w = newWorld(t, "serve")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := w.Evaluate(ctx, object(), rule("true")); got[0].Reason != workv1.ConditionRuleInternalError {
		t.Errorf("when the agent stops: %+v", got)
	}
	if got := w.Evaluate(t.Context(), object(), rule("true")); got[0].Status != metav1.ConditionTrue {
		t.Errorf("afterwards: %+v", got)
	}
	w.Close()
	started := w.started.Load()
	if got := w.Evaluate(t.Context(), object(), rule("true")); got[0].Reason != workv1.ConditionRuleInternalError || w.started.Load() != started {
		t.Errorf("after Close: %+v, and %d processes after %d", got, w.started.Load(), started)
	}
}
