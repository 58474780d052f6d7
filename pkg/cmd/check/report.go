package check

import (
	"context"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/checks"
)

// The words of package checks, as the checks of this package say them.

type status = checks.Status

const (
	ok      = checks.OK
	skipped = checks.Skipped
)

// step is a checks.Step.
type step struct {
	name   string
	needed bool
	run    func(context.Context) (status, string, string)
}

// run makes the checks in order.
func run(ctx context.Context, target string, steps []step) checks.Report {
	list := make([]checks.Step, len(steps))
	for i, s := range steps {
		list[i] = checks.Step{Name: s.name, Needed: s.needed, Run: s.run}
	}
	return checks.Run(ctx, target, list)
}

func good(format string, args ...any) (status, string, string) { return checks.Good(format, args...) }

func bad(try, format string, args ...any) (status, string, string) {
	return checks.Bad(try, format, args...)
}

func caution(try, format string, args ...any) (status, string, string) {
	return checks.Caution(try, format, args...)
}

func broken(err error) (status, string, string) { return checks.Broken(err) }
