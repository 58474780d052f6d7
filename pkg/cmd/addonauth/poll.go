package addonauth

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/addons"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
)

// interval is how often a waiting command looks again.
const interval = time.Second

// poll waits until look finds nothing open any more, and reports what it finds. A
// server that has answered once may be away for a while. The registrations that
// were open last are returned with an error.
func poll(ctx context.Context, env cli.Env, title string, look func(context.Context) ([]addons.Registration, error)) (open []addons.Registration, err error) {
	err = env.Progress().Step(ctx, title, func(ctx context.Context, say cli.Say) error {
		for answered := false; ; {
			found, err := look(ctx)
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case err != nil && !answered:
				return err
			case err != nil:
				say("trying again: %v", err)
			case len(found) == 0:
				open = nil
				return nil
			default:
				open, answered = found, true
				say("%s", summary(open))
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-env.Clock.After(interval):
			}
		}
	})
	return open, err
}

// summary says of some registrations what they wait for.
func summary(open []addons.Registration) string {
	const shown = 3
	var lines []string
	for _, r := range open[:min(len(open), shown)] {
		lines = append(lines, fmt.Sprintf("%s/%s: %s", r.Cluster, r.AddOn, r.Message))
	}
	if more := len(open) - shown; more > 0 {
		lines = append(lines, fmt.Sprintf("%d more", more))
	}
	return strings.Join(lines, "; ")
}
