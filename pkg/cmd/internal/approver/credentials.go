package approver

import (
	"context"

	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/eks"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/approval"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/awsauth"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/hubspec"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/grant"
)

// UseOwnCredentials makes the runner grant and revoke AWS identities with the AWS
// credentials of its user, for a hub whose controller has no role for it. The
// credentials must be of the hub's account; finding that out changes nothing.
func (r *Runner) UseOwnCredentials(ctx context.Context) error {
	spec, csrOnly, err := r.HubSpec(ctx)
	if err != nil {
		return Explain(err)
	}
	if csrOnly {
		return cli.Blockedf("leave --aws-credentials out", "this hub grants no AWS identities, so it has no use for AWS credentials")
	}
	config, err := spec.Config(hubspec.FieldNames())
	if err != nil {
		return err
	}
	caller, err := eks.New(ctx, r.env, config.Cluster)
	if err != nil {
		return err
	}
	if err := caller.Identify(ctx, config.Cluster.Account); err != nil {
		return err
	}
	hub := awsirsa.NewHub(config)
	hub.Connect(caller.Config, awsauth.Store{Live: r.Client, Client: r.Client})
	r.Hand = &grant.Manual{Client: r.Client, Namespace: names.HubNamespace, Granter: hub, Name: caller.ARN}
	r.env.Say("Using your AWS credentials: %s", caller.ARN)
	return nil
}

// sayIdentity says with whose credentials the AWS identity of an accepted cluster was
// granted, or that of a denied one revoked.
func (r *Runner) sayIdentity(f approval.Facts) {
	switch {
	case r.Revoked(f.Name):
		r.env.Say("%s: nothing is left in AWS of what was granted; it was revoked with your credentials.", f.Name)
	case f.EKS == nil || !f.Cluster.Spec.HubAcceptsClient || r.DryRun != approval.DryRunNone:
	case r.Granted(f.Name):
		r.env.Say("%s: AWS identity granted with your credentials, %s.", f.Name, r.Hand.Name)
	default:
		r.sayGranted(f)
	}
}

// sayGranted says what the hub reports about an AWS identity that exists.
func (r *Runner) sayGranted(f approval.Facts) {
	granted := apimeta.FindStatusCondition(f.Cluster.Status.Conditions, names.ConditionRegistrationGranted)
	switch {
	case granted == nil:
	case granted.Reason == names.ReasonGranted:
		r.env.Say("%s: AWS identity granted by the hub, with its own role.", f.Name)
	case granted.Reason == names.ReasonGrantedByHand:
		r.env.Say("%s: %s", f.Name, granted.Message)
	}
}
