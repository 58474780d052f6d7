package accept

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
)

const (
	// interval is how often the hub is looked at while waiting.
	interval = time.Second
	// patience is how long a signer may take when nobody asked to wait.
	patience = 15 * time.Second
)

// runner accepts clusters one after the other.
type runner struct {
	env    cli.Env
	client client.Client
	choice choice
	wait   cli.Wait
}

// result is how a cluster ended.
type result struct {
	Cluster  string          `json:"cluster"`
	Accepted bool            `json:"accepted"`
	Requests []fleet.Request `json:"requests"`
}

// errWaiting ends the waiting of a run that was not asked to wait.
var errWaiting = errors.New("not accepted yet")

// one brings one cluster to the desired state.
func (r *runner) one(ctx context.Context, name string) (result, error) {
	title := "Accepting " + name
	if r.choice.deny {
		title = "Denying " + name
	}
	waiting := ""
	err := r.env.Progress().Step(ctx, title, func(ctx context.Context, say cli.Say) error {
		deadline := r.env.Clock.Now().Add(patience)
		for {
			var err error
			if waiting, err = r.pass(ctx, name, say); err != nil || waiting == "" {
				return err
			}
			issuing := strings.Contains(waiting, "issue")
			if !r.wait.Enabled && (!issuing || r.env.Clock.Now().After(deadline)) {
				return errWaiting
			}
			say("waiting for %s", waiting)
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-r.env.Clock.After(interval):
			}
		}
	})
	return r.result(context.WithoutCancel(ctx), name, r.explain(err, name, waiting))
}

// explain says what stands in the way of a cluster.
func (r *runner) explain(err error, name, waiting string) error {
	try := fmt.Sprintf("see %s check cluster %s, or wait with --wait", r.env.Name, name)
	if strings.Contains(waiting, "issue") {
		try = fmt.Sprintf("see %s check hub: the hub may sign no client certificates", r.env.Name)
	}
	switch {
	case errors.Is(err, errWaiting) && strings.HasPrefix(waiting, "the cluster to register"):
		return cli.NotFoundf("run join on it first, or give --wait", "the hub knows no cluster %s", name)
	case errors.Is(err, errWaiting):
		return &cli.Explained{Problem: fmt.Sprintf("cluster %s is not accepted with a credential yet: waiting for %s", name, waiting), Try: try}
	case waiting != "":
		return r.wait.TimedOut(err, fmt.Sprintf("%s (cluster %s)", waiting, name), try)
	}
	return err
}

// pass looks once and does what can be done now. It returns what is missing.
func (r *runner) pass(ctx context.Context, name string, say cli.Say) (waiting string, err error) {
	f, err := r.facts(ctx, name)
	if err != nil {
		return "", err
	}
	v, err := decide(f, r.choice)
	if err != nil {
		return "", err
	}
	changed := v.accept != nil && f.cluster.Spec.HubAcceptsClient != *v.accept
	if changed {
		say("setting hubAcceptsClient to %t", *v.accept)
	}
	for _, req := range v.deny {
		say("denying request %s", req.Name)
	}
	for _, req := range v.approve {
		say("approving request %s of %s with key %s", req.Name, req.Requester, req.Fingerprint)
	}
	switch r.env.Kube.DryRun() {
	case cli.DryRunClient:
		return "", nil
	case cli.DryRunServer:
		return "", r.act(ctx, f, v, changed)
	}
	return v.waiting, r.act(ctx, f, v, changed)
}

// act makes the writes. Acceptance comes first: it is what admission may
// refuse, and a certificate without it is worth nothing.
func (r *runner) act(ctx context.Context, f facts, v verdict, changed bool) error {
	for _, req := range v.deny {
		if err := r.settle(ctx, req, certificatesv1.CertificateDenied); err != nil {
			return err
		}
	}
	if changed {
		patch := client.MergeFrom(f.cluster.DeepCopy())
		f.cluster.Spec.HubAcceptsClient = *v.accept
		if err := r.client.Patch(ctx, f.cluster, patch); err != nil {
			return fmt.Errorf("cluster %s: %w", f.name, err)
		}
	}
	for _, req := range v.approve {
		if err := r.settle(ctx, req, certificatesv1.CertificateApproved); err != nil {
			return err
		}
	}
	return nil
}

// settle approves or denies a request. Somebody else's decision in between is
// seen in the next pass.
func (r *runner) settle(ctx context.Context, req fleet.Request, kind certificatesv1.RequestConditionType) error {
	obj := req.Object.DeepCopy()
	condition := certificatesv1.CertificateSigningRequestCondition{
		Type: kind, Status: corev1.ConditionTrue,
		Reason:  r.env.Name + " Approve",
		Message: fmt.Sprintf("This CSR was approved by %s certificate approve.", r.env.Name),
	}
	if kind == certificatesv1.CertificateDenied {
		condition.Reason = r.env.Name + " Deny"
		condition.Message = fmt.Sprintf("This CSR was denied by %s accept.", r.env.Name)
	}
	obj.Status.Conditions = append(obj.Status.Conditions, condition)
	err := r.client.SubResource("approval").Update(ctx, obj)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("request %s: %w", req.Name, err)
	}
	return nil
}

func (r *runner) facts(ctx context.Context, name string) (facts, error) {
	f := facts{name: name}
	cluster := &clusterv1.ManagedCluster{}
	err := r.client.Get(ctx, client.ObjectKey{Name: name}, cluster)
	switch {
	case err == nil:
		f.cluster = cluster
	case !apierrors.IsNotFound(err):
		return f, fmt.Errorf("cluster %s: %w", name, err)
	}
	f.requests, err = fleet.Requests(ctx, r.client, name)
	return f, err
}

// result reads how the cluster ended. It is asked after an interrupt as well,
// so the error that matters is given to it.
func (r *runner) result(ctx context.Context, name string, err error) (result, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	res := result{Cluster: name}
	f, readErr := r.facts(ctx, name)
	if readErr != nil {
		return res, errors.Join(err, readErr)
	}
	res.Requests = f.requests
	res.Accepted = f.cluster != nil && f.cluster.Spec.HubAcceptsClient
	if err == nil && r.env.Kube.DryRun() == cli.DryRunNone {
		r.praise(res)
	}
	return res, err
}

func (r *runner) praise(res result) {
	switch {
	case r.choice.deny:
		r.env.Say("Cluster %s is denied.", res.Cluster)
	default:
		r.env.Say("Your managed cluster %s has joined the hub successfully. See it with: %s get clusters", res.Cluster, r.env.Name)
	}
}
