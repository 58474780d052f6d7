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

// poll waits until look finds nothing open any more, and tells what it finds.
// The registrations that were open last are returned with an error.
func poll(ctx context.Context, env cli.Env, title string, look func(context.Context) ([]addons.Registration, error)) (open []addons.Registration, err error) {
	err = env.Progress().Step(ctx, title, func(ctx context.Context, say cli.Say) error {
		for {
			found, err := look(ctx)
			if err != nil {
				return err
			}
			if open = found; len(open) == 0 {
				return nil
			}
			say("%s", summary(open))
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
