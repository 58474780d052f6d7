package acceptance

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/awscaller"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/awsauth"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/cloud"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/hubspec"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/grant"
)

// UseOwnCredentials has the runner grant and revoke AWS identities with the AWS
// credentials of whoever runs it, where the hub controller has no role for it. The
// credentials must be of the hub's account; nothing is changed in finding out.
func (r *Runner) UseOwnCredentials(ctx context.Context) error {
	spec, csrOnly, err := r.hubSpec(ctx)
	if err != nil {
		return err
	}
	if csrOnly {
		return cli.Blockedf("leave --aws-credentials out", "this hub gives no AWS identities, so that AWS credentials have no use")
	}
	config, err := spec.Config(hubspec.FieldNames())
	if err != nil {
		return err
	}
	caller, err := awscaller.New(ctx, r.Env, config.Cluster)
	if err != nil {
		return err
	}
	if err := caller.Identify(ctx, config.Cluster.Account); err != nil {
		return err
	}
	hub := awsirsa.NewHub(config)
	hub.Connect(caller.Config, awsauth.Store{Live: r.Client, Client: r.Client})
	r.hand = &grant.Hand{Client: r.Client, Namespace: names.HubNamespace, Granter: hub, Name: caller.ARN}
	r.granted, r.revoked = map[string]bool{}, map[string]bool{}
	r.Env.Say("Using your AWS credentials: %s", caller.ARN)
	return nil
}

// byHand grants or revokes with the user's own credentials what the decision that
// was just carried out asks for.
func (r *Runner) byHand(ctx context.Context, f Facts, v Verdict) (Verdict, error) {
	decided := f.Cluster != nil && f.Cluster.Spec.HubAcceptsClient == !r.Choice.Deny
	if r.hand == nil || !decided || r.Env.Kube.DryRun() != cli.DryRunNone || r.granted[f.Name] {
		return v, nil
	}
	waiting, err := r.hand.Settle(ctx, f.Cluster)
	if err != nil {
		waiting, err = r.refused(f.Name, err)
	}
	switch {
	case err != nil:
	case waiting != "":
		v.Missing, v.Waiting = Grant, waiting
	case r.Choice.Deny:
		return r.letGo(f, v), nil
	default:
		r.granted[f.Name] = true
	}
	return v, err
}

// letGo waits until the hub lets a cluster go whose identity was revoked. The
// controller may have recorded a grant once more before it saw the denial: what is
// recorded is revoked until then.
func (r *Runner) letGo(f Facts, v Verdict) Verdict {
	r.revoked[f.Name] = true
	if slices.Contains(f.Cluster.Finalizers, names.FinalizerGrants) {
		v.Missing, v.Waiting = Revocation, "the hub controller to see that nothing is granted any more"
	}
	return v
}

// refused returns what AWS may do another time as something to wait for, and says
// about everything else what to do.
func (r *Runner) refused(cluster string, err error) (waiting string, final error) {
	call, ok := errors.AsType[*cloud.Error](err)
	switch {
	case !ok:
		return "", fmt.Errorf("cluster %s: %w", cluster, err)
	case cloud.Unauthorized(err):
		return "", cli.Blockedf(
			fmt.Sprintf("allow it, or choose other credentials; %s prints what is needed; then run the same command again", r.Env.Command("aws prerequisites hub")),
			"cluster %s: AWS does not allow %s on %s to %s", cluster, call.Action, call.Resource, r.hand.Name)
	case call.Code == "":
		return fmt.Sprintf("AWS to answer %s on %s", call.Action, call.Resource), nil
	}
	return fmt.Sprintf("AWS, which answered %s on %s with %s", call.Action, call.Resource, call.Code), nil
}

// sayWho says with whose credentials the AWS identity of an accepted cluster was
// granted, or of a denied one revoked.
func (r *Runner) sayWho(f Facts) {
	switch {
	case r.revoked[f.Name]:
		r.Env.Say("%s: nothing is left in AWS of what was granted; it was revoked with your credentials.", f.Name)
	case f.EKS == nil || !f.Cluster.Spec.HubAcceptsClient || r.Env.Kube.DryRun() != cli.DryRunNone:
	case r.granted[f.Name]:
		r.Env.Say("%s: AWS identity granted with your credentials, %s.", f.Name, r.hand.Name)
	default:
		r.sayGranted(f)
	}
}

// sayGranted says what the hub reports about an AWS identity that exists.
func (r *Runner) sayGranted(f Facts) {
	granted := apimeta.FindStatusCondition(f.Cluster.Status.Conditions, names.ConditionRegistrationGranted)
	switch {
	case granted == nil:
	case granted.Reason == names.ReasonGranted:
		r.Env.Say("%s: AWS identity granted by the hub, with its own role.", f.Name)
	case granted.Reason == names.ReasonGrantedByHand:
		r.Env.Say("%s: %s", f.Name, granted.Message)
	}
}
