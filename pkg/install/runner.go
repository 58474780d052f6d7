package install

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/discovery"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apply"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// FieldManager owns what init and join apply.
const FieldManager = names.FieldManagerCLI

// Say reports what a step waits for.
type Say func(format string, args ...any)

// Step runs fn under a title that a user sees.
type Step func(ctx context.Context, title string, fn func(context.Context, Say) error) error

// Runner installs into one cluster.
type Runner struct {
	Client    client.WithWatch
	Discovery discovery.ServerVersionInterface
	Clock     clock.Clock
	// Drivers are the registration drivers that there are.
	Drivers driver.Catalog
	Step    Step
	// Target names the cluster in messages.
	Target string
	// DryRun says that Client's writes change nothing: nothing is waited for.
	DryRun bool
	// Skip names the checks whose findings are warnings only.
	Skip []string
	// Wait makes the runner wait until what it installed works.
	Wait bool
}

// Outcome describes a run.
type Outcome struct {
	Changes apply.ChangeSet
	// Warnings are the findings that did not stop the run.
	Warnings []Finding
	// Image is the image of the components.
	Image string
	// Replaced names the installation that a take-over replaced; empty without one.
	Replaced string
}

// Applier applies and deletes objects as FieldManager.
func (r *Runner) Applier() *apply.Applier {
	return &apply.Applier{Client: r.Client, FieldManager: FieldManager, DryRun: r.DryRun}
}

// Waiter waits for objects and reports what it waits for.
func (r *Runner) Waiter(say Say) *apply.Waiter {
	return &apply.Waiter{Client: r.Client, Clock: r.Clock, Progress: func(obj apply.Ref, message string) {
		say("%s: %s", obj, message)
	}}
}

// Apply applies objs and reports what changed.
func (r *Runner) Apply(ctx context.Context, title string, objs []client.Object) (changes apply.ChangeSet, err error) {
	err = r.Step(ctx, title, func(ctx context.Context, say Say) error {
		changes, err = r.Applier().Apply(ctx, objs...)
		for _, change := range changes {
			if change.Action != apply.Unchanged {
				say("%s %s%s", change.Object, change.Action, r.DryRunSuffix())
			}
		}
		return err
	})
	return changes, err
}

// DryRunSuffix marks a line about what a dry run did not do.
func (r *Runner) DryRunSuffix() string {
	if r.DryRun {
		return " (server dry run)"
	}
	return ""
}

// Await waits for targets unless the run is dry.
func (r *Runner) Await(ctx context.Context, title string, targets ...apply.Target) error {
	if r.DryRun {
		return nil
	}
	return r.Step(ctx, title, func(ctx context.Context, say Say) error {
		ctx, pods := r.lookAtPods(ctx, say, targets)
		err := r.Waiter(say).Wait(ctx, targets...)
		return pods.explain(err)
	})
}

// Preflight gathers facts and checks them. It returns all findings together.
func (r *Runner) Preflight(ctx context.Context, gather func(context.Context) ([]Finding, error)) (warnings []Finding, err error) {
	err = r.Step(ctx, "Checking the cluster "+r.Target, func(ctx context.Context, say Say) error {
		findings, err := gather(ctx)
		if err != nil {
			return err
		}
		warnings, err = Sift(findings, r.Skip)
		for _, w := range warnings {
			say("warning: [%s] %s", w.Check, w.Message)
		}
		return err
	})
	return warnings, err
}

// Unmet returns what a wait that ended too early was waiting for, in one
// sentence, or "".
func Unmet(err error) string {
	var wait *apply.WaitError
	if !errors.As(err, &wait) || len(wait.Unmet) == 0 {
		return ""
	}
	texts := make([]string, len(wait.Unmet))
	for i, u := range wait.Unmet {
		texts[i] = fmt.Sprintf("%s: %s", u.Object, strings.ReplaceAll(u.Message, "\n", "; "))
	}
	return strings.Join(texts, "; ")
}

// PollInterval is the interval at which an installer reads objects that it cannot watch.
const PollInterval = time.Second

// Unblocked returns what blocks the deletion of an object, for messages.
func Unblocked(err error) string {
	if text := Unmet(err); text != "" {
		return text
	}
	if terminating, ok := errors.AsType[*apply.TerminatingError](err); ok {
		return terminating.Error()
	}
	if apierrors.IsForbidden(err) {
		return err.Error()
	}
	return ""
}
