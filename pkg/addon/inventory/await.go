package inventory

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pause"
)

// interval is how long Await waits between two reads.
const interval = time.Second

// Await waits until pending returns no registration, and reports with say what each of them
// waits for. After the first answer, errors are reported and retried: a server may be away for
// a while. With an error, Await returns the registrations that were pending last.
func Await(ctx context.Context, clk clock.WithTicker, say Warn, pending func(context.Context) ([]Registration, error)) (last []Registration, err error) {
	for answered := false; ; {
		found, err := pending(ctx)
		switch {
		case ctx.Err() != nil:
			return last, ctx.Err()
		case err != nil && !answered:
			return last, err
		case err != nil:
			say("trying again: %v", err)
		case len(found) == 0:
			return nil, nil
		default:
			last, answered = found, true
			say("%s", Summary(last))
		}
		if !pause.For(ctx, clk, interval) {
			return last, ctx.Err()
		}
	}
}

// Summary returns what the first three registrations wait for, and how many more there are.
func Summary(pending []Registration) string {
	const shown = 3
	var lines []string
	for _, r := range pending[:min(len(pending), shown)] {
		lines = append(lines, fmt.Sprintf("%s/%s: %s", r.Cluster, r.AddOn, r.Message))
	}
	if more := len(pending) - shown; more > 0 {
		lines = append(lines, fmt.Sprintf("%d more", more))
	}
	return strings.Join(lines, "; ")
}
