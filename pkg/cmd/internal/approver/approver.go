package approver

import (
	"context"
	"errors"
	"fmt"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/approval"
)

// summaryTimeout bounds the last look at a cluster, which also an interrupted
// command takes.
const summaryTimeout = 15 * time.Second

// Runner accepts or denies clusters one after the other.
type Runner struct {
	*approval.Approver

	env  cli.Env
	wait cli.Wait
	hub  cli.Context
}

// New returns a runner for the hub that c leads to. hub is how the user named it,
// where the connection flags name another cluster.
func New(env cli.Env, c client.Client, wait cli.Wait, hub cli.Context) *Runner {
	return &Runner{env: env, wait: wait, hub: hub, Approver: &approval.Approver{
		Client: c, Clock: env.Clock, Name: env.Name, Drivers: env.Drivers, Wait: wait.Enabled, Say: env.Say, Warn: env.Warn,
		DryRun: map[cli.DryRun]approval.DryRun{
			cli.DryRunClient: approval.DryRunClient, cli.DryRunServer: approval.DryRunServer,
		}[env.Kube.DryRun()],
	}}
}

// Result is how a cluster ended.
type Result struct {
	Cluster  string             `json:"cluster"`
	Accepted bool               `json:"accepted"`
	Requests []approval.Request `json:"requests"`
	// Brought is what the cluster brought when it was accepted, a line each.
	Brought []string `json:"brought,omitempty"`
	// Known is set if the hub has the cluster or a request for it.
	Known bool `json:"-"`
}

// One brings one cluster into the chosen state.
func (r *Runner) One(ctx context.Context, name string) (Result, error) {
	title := "Accepting " + name
	if r.Choice.Deny {
		title = "Denying " + name
	}
	err := r.env.Progress().Step(ctx, title, func(ctx context.Context, say cli.Say) error {
		return r.Run(ctx, name, func(format string, args ...any) {
			say(format+r.env.Kube.DryRunSuffix(), args...)
		})
	})
	return r.result(context.WithoutCancel(ctx), name, r.explain(ctx, err, name))
}

// explain says what stands in the way of a cluster, and what to do about it.
func (r *Runner) explain(ctx context.Context, err error, name string) error {
	if awaited, ok := errors.AsType[*approval.AwaitError](err); ok {
		return r.explainAwaited(ctx, awaited, name)
	}
	if unauthorized, ok := errors.AsType[*approval.UnauthorizedError](err); ok {
		return cli.Blockedf(
			fmt.Sprintf("allow it, or choose other credentials; %s prints what is needed; then run the same command again", r.env.Command(unauthorized.By.Words().Needs)),
			"%v", unauthorized)
	}
	return cli.Explain(err)
}

// explainAwaited says what a cluster lacks, for a run that did not wait and for one
// whose time was over.
func (r *Runner) explainAwaited(ctx context.Context, err *approval.AwaitError, name string) error {
	try := fmt.Sprintf("see %s, or wait with --wait", r.env.CommandAt(r.hub, "check cluster", name))
	switch {
	case err.Awaited == approval.AwaitsGrant && r.Hand == nil:
		words := err.By.Words()
		try += fmt.Sprintf("; where the hub has no credentials of %s, grant it with your own, with %s", words.Provider, words.OwnFlag)
	case err.Awaited == approval.AwaitsCertificate:
		try = fmt.Sprintf("see %s: the hub may sign no client certificates", r.env.CommandAt(r.hub, "check hub"))
	}
	switch {
	case err.Cause != nil:
		return r.wait.TimedOut(err.Cause, fmt.Sprintf("%s (cluster %s)", err.Waiting, name), try)
	case err.Awaited == approval.AwaitsReport:
		r.env.Say("The hub does not report yet whether it granted an identity to %s. See it with: %s", name, r.env.CommandAt(r.hub, "check cluster", name))
		return nil
	case err.Awaited == approval.AwaitsRegistration:
		return fleet.UnknownCluster(ctx, r.Client, name, "run join on it first, or give --wait")
	case err.Awaited == approval.AwaitsRevocation:
		return &cli.Explained{Problem: fmt.Sprintf("cluster %s is denied; waiting for %s", name, err.Waiting), Try: try}
	}
	return &cli.Explained{Problem: fmt.Sprintf("cluster %s is not accepted with a credential yet: waiting for %s", name, err.Waiting), Try: try}
}

// result reads how the cluster ended, also after an interrupt, and returns it with
// err.
func (r *Runner) result(ctx context.Context, name string, err error) (Result, error) {
	ctx, cancel := context.WithTimeout(ctx, summaryTimeout)
	defer cancel()
	res := Result{Cluster: name}
	f, readErr := r.Facts(ctx, name)
	if readErr != nil {
		return res, errors.Join(err, cli.Explain(readErr))
	}
	res.Brought = r.Introduced(name)
	res.Requests, res.Known = f.Requests, f.Cluster != nil || len(f.Requests) > 0
	res.Accepted = f.Cluster != nil && f.Cluster.Spec.HubAcceptsClient
	if err == nil {
		r.summarize(res, f.Cluster)
		r.sayIdentity(f)
	}
	return res, err
}

// summarize says how far the cluster is, as far as the hub knows.
func (r *Runner) summarize(res Result, cluster *clusterv1.ManagedCluster) {
	switch {
	case r.DryRun != approval.DryRunNone:
		r.env.Say("Nothing was changed%s.", r.env.Kube.DryRunSuffix())
	case r.Choice.Deny:
		r.env.Say("Cluster %s is denied.", res.Cluster)
	case cluster != nil && apimeta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1.ManagedClusterConditionJoined):
		r.env.Say("Your managed cluster %s has joined the hub successfully. See it with: %s", res.Cluster, r.env.CommandAt(r.hub, "get clusters"))
	default:
		r.env.Say("Cluster %s is accepted. Its agent has not connected with its credential yet. See it with: %s", res.Cluster, r.env.CommandAt(r.hub, "get clusters"))
	}
}
