package acceptance

import (
	"context"
	"errors"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/grant"
)

const (
	// interval is how often the hub is looked at while waiting.
	interval = time.Second
	// patience is how long a signer may take when nobody asked to wait.
	patience = 15 * time.Second
)

// Runner accepts clusters one after the other.
type Runner struct {
	Env    cli.Env
	Client client.Client
	Choice Choice
	Wait   cli.Wait
	// Hub is how the user named the hub, where the flags choose another cluster.
	Hub cli.Context
	// Own, if set, returns the fingerprint of the key with which the agent asks
	// that is to be accepted; "" while it asks for nothing. It is asked in every
	// pass and sets Choice.Fingerprint; no other request is approved.
	Own func(context.Context) (string, error)
	// HubARN is the ARN of the hub's EKS cluster; empty for the one that the hub's
	// ClusterManager has.
	HubARN string

	// shown are the ARNs that were printed, by cluster.
	shown map[string]string
	// hand grants and revokes with AWS credentials of the user's own, nil if the hub
	// does; granted and revoked are the clusters for which it has.
	hand             *grant.Hand
	granted, revoked map[string]bool
}

// Result is how a cluster ended.
type Result struct {
	Cluster  string          `json:"cluster"`
	Accepted bool            `json:"accepted"`
	Requests []fleet.Request `json:"requests"`
	// Known says that the hub has the cluster or a request for it. What the hub
	// did not answer is not known.
	Known bool `json:"-"`
}

// errWaiting ends the waiting of a run that was not asked to wait.
var errWaiting = errors.New("not accepted yet")

// One brings one cluster to the desired state.
func (r *Runner) One(ctx context.Context, name string) (Result, error) {
	title := "Accepting " + name
	if r.Choice.Deny {
		title = "Denying " + name
	}
	var v Verdict
	err := r.Env.Progress().Step(ctx, title, func(ctx context.Context, say cli.Say) error {
		deadline := r.Env.Clock.Now().Add(patience)
		for {
			// What was missing before says what the time was too short for.
			next, err := r.pass(ctx, name, say)
			if err != nil || next.Missing == Nothing {
				return err
			}
			v = next
			if !r.Wait.Enabled && (!v.Missing.brief() || r.Env.Clock.Now().After(deadline)) {
				return errWaiting
			}
			say("waiting for %s", v.Waiting)
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-r.Env.Clock.After(interval):
			}
		}
	})
	return r.result(context.WithoutCancel(ctx), name, r.explain(err, name, v))
}

// explain says what stands in the way of a cluster.
func (r *Runner) explain(err error, name string, v Verdict) error {
	try := fmt.Sprintf("see %s, or wait with --wait", r.Env.CommandAt(r.Hub, "check cluster", name))
	if v.Missing == Grant && r.hand == nil {
		try += "; where the hub has no AWS role, grant it with your own, with --aws-credentials own"
	}
	if v.Missing == Certificate {
		try = fmt.Sprintf("see %s: the hub may sign no client certificates", r.Env.CommandAt(r.Hub, "check hub"))
	}
	switch {
	case errors.Is(err, errWaiting) && v.Missing == Report:
		r.Env.Say("The hub does not report yet whether it granted an identity to %s. See it with: %s", name, r.Env.CommandAt(r.Hub, "check cluster", name))
		return nil
	case errors.Is(err, errWaiting) && v.Missing == Registration:
		return cli.NotFoundf("run join on it first, or give --wait", "the hub knows no cluster %s", name)
	case errors.Is(err, errWaiting) && v.Missing == Revocation:
		return &cli.Explained{Problem: fmt.Sprintf("cluster %s is denied; waiting for %s", name, v.Waiting), Try: try}
	case errors.Is(err, errWaiting):
		return &cli.Explained{Problem: fmt.Sprintf("cluster %s is not accepted with a credential yet: waiting for %s", name, v.Waiting), Try: try}
	case v.Missing != Nothing:
		return r.Wait.TimedOut(err, fmt.Sprintf("%s (cluster %s)", v.Waiting, name), try)
	}
	return err
}

// pass looks once and does what can be done now. The verdict that it returns
// says what is missing.
func (r *Runner) pass(ctx context.Context, name string, say cli.Say) (Verdict, error) {
	choice, err := r.choice(ctx)
	if err != nil {
		return Verdict{}, err
	}
	f, err := r.facts(ctx, name)
	if err != nil {
		return Verdict{}, err
	}
	if f.Cluster == nil && r.revoked[name] {
		return Verdict{}, nil // It was being deleted, and nothing held it any longer.
	}
	v, err := Decide(f, choice)
	if err != nil {
		return Verdict{}, err
	}
	if err := r.show(f); err != nil {
		return Verdict{}, err
	}
	r.sayWrites(name, v, say)
	switch r.Env.Kube.DryRun() {
	case cli.DryRunClient:
		return Verdict{}, nil
	case cli.DryRunServer:
		v.Missing = Nothing
	case cli.DryRunNone:
	}
	if err := r.act(ctx, f, v); err != nil {
		return v, err
	}
	return r.byHand(ctx, f, v)
}

// sayWrites says what is about to be written.
func (r *Runner) sayWrites(name string, v Verdict, say cli.Say) {
	if v.Accept != nil {
		say("setting hubAcceptsClient to %t%s", *v.Accept, r.Env.Kube.DryRunSuffix())
	}
	for _, req := range v.Deny {
		say("denying request %s%s", req.Name, r.Env.Kube.DryRunSuffix())
	}
	for _, req := range v.Approve {
		// This line stays: who accepts a cluster sees what was accepted.
		r.Env.Say("%s: %s", name, req.Describe(r.Env.Clock.Now()))
		say("approving request %s%s", req.Name, r.Env.Kube.DryRunSuffix())
	}
}

// choice returns what the user wants, with the key of the agent's own where the
// runner knows the agent.
func (r *Runner) choice(ctx context.Context) (Choice, error) {
	choice := r.Choice
	if r.Own == nil {
		return choice, nil
	}
	var err error
	choice.Own = true
	choice.Fingerprint, err = r.Own(ctx)
	return choice, err
}

// act makes the writes. Acceptance comes last: the hub gives the rights of an
// accepted cluster to the agent whose request was approved, and an agent that
// had them before must not have them again for a moment. A certificate without
// acceptance is worth nothing.
func (r *Runner) act(ctx context.Context, f Facts, v Verdict) error {
	if v.Change != nil && f.Cluster.Spec.HubAcceptsClient {
		if r.Env.Kube.DryRun() == cli.DryRunServer {
			v.Accept = new(false) // The cluster stays accepted, so that the second write would be refused.
		} else if err := r.suspend(ctx, f); err != nil {
			return err
		}
	}
	for _, req := range v.Deny {
		if err := r.settle(ctx, req, certificatesv1.CertificateDenied); err != nil {
			return err
		}
	}
	for _, req := range v.Approve {
		if err := r.settle(ctx, req, certificatesv1.CertificateApproved); err != nil {
			return err
		}
	}
	if v.Accept == nil {
		return nil
	}
	return r.accept(ctx, f, v)
}

// settle approves or denies a request. Somebody else's decision in between is
// seen in the next pass.
func (r *Runner) settle(ctx context.Context, req fleet.Request, kind certificatesv1.RequestConditionType) error {
	by, obj := r.Env.Name, req.Object.DeepCopy()
	condition := certificatesv1.CertificateSigningRequestCondition{
		Type: kind, Status: corev1.ConditionTrue,
		Reason:  by + " Approve",
		Message: fmt.Sprintf("This CSR was approved by %s certificate approve.", by),
	}
	if kind == certificatesv1.CertificateDenied {
		condition.Reason = by + " Deny"
		condition.Message = fmt.Sprintf("This CSR was denied by %s accept.", by)
	}
	obj.Status.Conditions = append(obj.Status.Conditions, condition)
	err := r.Client.SubResource("approval").Update(ctx, obj)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("request %s: %w", req.Name, err)
	}
	return nil
}

func (r *Runner) facts(ctx context.Context, name string) (Facts, error) {
	f := Facts{Name: name}
	cluster := &clusterv1.ManagedCluster{}
	err := r.Client.Get(ctx, client.ObjectKey{Name: name}, cluster)
	switch {
	case err == nil:
		f.Cluster = cluster
	case !apierrors.IsNotFound(err):
		return f, fmt.Errorf("cluster %s: %w", name, err)
	}
	if f.Requests, err = fleet.Requests(ctx, r.Client, name); err != nil {
		return f, err
	}
	return f, r.registration(ctx, &f)
}

// result reads how the cluster ended. It is asked after an interrupt as well,
// so the error that matters is given to it.
func (r *Runner) result(ctx context.Context, name string, err error) (Result, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	res := Result{Cluster: name}
	f, readErr := r.facts(ctx, name)
	if readErr != nil {
		return res, errors.Join(err, readErr)
	}
	res.Requests, res.Known = f.Requests, f.Cluster != nil || len(f.Requests) > 0
	res.Accepted = f.Cluster != nil && f.Cluster.Spec.HubAcceptsClient
	if err == nil {
		r.summarize(res, f.Cluster)
		r.sayWho(f)
	}
	return res, err
}

// summarize says how far the cluster is, as far as the hub knows.
func (r *Runner) summarize(res Result, cluster *clusterv1.ManagedCluster) {
	switch {
	case r.Env.Kube.DryRun() != cli.DryRunNone:
		r.Env.Say("Nothing was changed%s.", r.Env.Kube.DryRunSuffix())
	case r.Choice.Deny:
		r.Env.Say("Cluster %s is denied.", res.Cluster)
	case cluster != nil && apimeta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1.ManagedClusterConditionJoined):
		r.Env.Say("Your managed cluster %s has joined the hub successfully. See it with: %s", res.Cluster, r.Env.CommandAt(r.Hub, "get clusters"))
	default:
		r.Env.Say("Cluster %s is accepted. Its agent has not connected with its credential yet. See it with: %s", res.Cluster, r.Env.CommandAt(r.Hub, "get clusters"))
	}
}
