package acceptance

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
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
}

// Result is how a cluster ended.
type Result struct {
	Cluster  string          `json:"cluster"`
	Accepted bool            `json:"accepted"`
	Requests []fleet.Request `json:"requests"`
}

// errWaiting ends the waiting of a run that was not asked to wait.
var errWaiting = errors.New("not accepted yet")

// One brings one cluster to the desired state.
func (r *Runner) One(ctx context.Context, name string) (Result, error) {
	title := "Accepting " + name
	if r.Choice.Deny {
		title = "Denying " + name
	}
	waiting := ""
	err := r.Env.Progress().Step(ctx, title, func(ctx context.Context, say cli.Say) error {
		deadline := r.Env.Clock.Now().Add(patience)
		for {
			var err error
			if waiting, err = r.pass(ctx, name, say); err != nil || waiting == "" {
				return err
			}
			issuing := strings.Contains(waiting, "issue")
			if !r.Wait.Enabled && (!issuing || r.Env.Clock.Now().After(deadline)) {
				return errWaiting
			}
			say("waiting for %s", waiting)
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-r.Env.Clock.After(interval):
			}
		}
	})
	return r.result(context.WithoutCancel(ctx), name, r.explain(err, name, waiting))
}

// explain says what stands in the way of a cluster.
func (r *Runner) explain(err error, name, waiting string) error {
	try := fmt.Sprintf("see %s check cluster %s, or wait with --wait", r.Env.Name, name)
	if strings.Contains(waiting, "issue") {
		try = fmt.Sprintf("see %s check hub: the hub may sign no client certificates", r.Env.Name)
	}
	switch {
	case errors.Is(err, errWaiting) && strings.HasPrefix(waiting, "the cluster to register"):
		return cli.NotFoundf("run join on it first, or give --wait", "the hub knows no cluster %s", name)
	case errors.Is(err, errWaiting):
		return &cli.Explained{Problem: fmt.Sprintf("cluster %s is not accepted with a credential yet: waiting for %s", name, waiting), Try: try}
	case waiting != "":
		return r.Wait.TimedOut(err, fmt.Sprintf("%s (cluster %s)", waiting, name), try)
	}
	return err
}

// pass looks once and does what can be done now. It returns what is missing.
func (r *Runner) pass(ctx context.Context, name string, say cli.Say) (waiting string, err error) {
	f, err := r.facts(ctx, name)
	if err != nil {
		return "", err
	}
	v, err := Decide(f, r.Choice)
	if err != nil {
		return "", err
	}
	if v.Accept != nil {
		say("setting hubAcceptsClient to %t", *v.Accept)
	}
	for _, req := range v.Deny {
		say("denying request %s", req.Name)
	}
	for _, req := range v.Approve {
		say("approving request %s of %s with key %s", req.Name, req.Requester, req.Fingerprint)
	}
	switch r.Env.Kube.DryRun() {
	case cli.DryRunClient:
		return "", nil
	case cli.DryRunServer:
		v.Waiting = ""
	case cli.DryRunNone:
	}
	return v.Waiting, r.act(ctx, f, v)
}

// act makes the writes. Acceptance comes first: it is what admission may
// refuse, and a certificate without it is worth nothing.
func (r *Runner) act(ctx context.Context, f Facts, v Verdict) error {
	for _, req := range v.Deny {
		if err := r.settle(ctx, req, certificatesv1.CertificateDenied); err != nil {
			return err
		}
	}
	if v.Accept != nil {
		patch := client.MergeFrom(f.Cluster.DeepCopy())
		f.Cluster.Spec.HubAcceptsClient = *v.Accept
		if *v.Accept {
			delete(f.Cluster.Annotations, names.AnnotationLeft)
		}
		if err := r.Client.Patch(ctx, f.Cluster, patch); err != nil {
			return fmt.Errorf("cluster %s: %w", f.Name, err)
		}
	}
	for _, req := range v.Approve {
		if err := r.settle(ctx, req, certificatesv1.CertificateApproved); err != nil {
			return err
		}
	}
	return nil
}

// settle approves or denies a request. Somebody else's decision in between is
// seen in the next pass.
func (r *Runner) settle(ctx context.Context, req fleet.Request, kind certificatesv1.RequestConditionType) error {
	obj := req.Object.DeepCopy()
	condition := certificatesv1.CertificateSigningRequestCondition{
		Type: kind, Status: corev1.ConditionTrue,
		Reason:  r.Env.Name + " Approve",
		Message: fmt.Sprintf("This CSR was approved by %s certificate approve.", r.Env.Name),
	}
	if kind == certificatesv1.CertificateDenied {
		condition.Reason = r.Env.Name + " Deny"
		condition.Message = fmt.Sprintf("This CSR was denied by %s accept.", r.Env.Name)
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
	f.Requests, err = fleet.Requests(ctx, r.Client, name)
	return f, err
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
	res.Requests = f.Requests
	res.Accepted = f.Cluster != nil && f.Cluster.Spec.HubAcceptsClient
	if err == nil && r.Env.Kube.DryRun() == cli.DryRunNone {
		r.praise(res)
	}
	return res, err
}

func (r *Runner) praise(res Result) {
	switch {
	case r.Choice.Deny:
		r.Env.Say("Cluster %s is denied.", res.Cluster)
	default:
		r.Env.Say("Your managed cluster %s has joined the hub successfully. See it with: %s get clusters", res.Cluster, r.Env.Name)
	}
}
