package fleet

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/client-go/discovery"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/bootstrap"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
)

// NewRunner returns an installer, for the cluster that kube leads to, that reports
// its progress to the user.
func NewRunner(env cli.Env, kube *cli.Kube) (*install.Runner, error) {
	c, config, err := kube.Connect()
	if err != nil {
		return nil, err
	}
	disco, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("discovery for %s: %w", config.Host, err)
	}
	progress := env.Progress()
	return &install.Runner{
		Client: c, Discovery: disco, Clock: env.Clock, Drivers: env.Drivers, Target: config.Host,
		DryRun: env.Kube.DryRun() == cli.DryRunServer,
		Step: func(ctx context.Context, title string, fn func(context.Context, install.Say) error) error {
			return progress.Step(ctx, title, func(ctx context.Context, say cli.Say) error {
				return fn(ctx, install.Say(say))
			})
		},
	}, nil
}

// Explain turns an installer's error into what a user reads and the exit code.
func Explain(err error) error {
	if preflight, ok := errors.AsType[*install.PreflightError](err); ok {
		explained := &cli.Explained{
			Problem: preflight.Error(), Code: cli.CodeBlocked,
			Try: "fix it, or make a check a warning with --skip-check=NAME; nothing was changed",
		}
		if !preflight.Skippable() {
			explained.Try = "nothing was changed; this cannot be skipped"
		}
		return explained
	}
	if contact, ok := errors.AsType[*bootstrap.Error](err); ok {
		return &cli.Explained{Problem: contact.Problem, Try: contact.Try, Code: cli.CodeBlocked, Cause: contact.Cause}
	}
	return err
}
