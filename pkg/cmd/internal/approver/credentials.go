package approver

import (
	"context"

	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/approval"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/grant"
)

// UseOwnCredentials makes the runner grant and revoke identities with the credentials that
// its user has where the driver grants, for a hub whose controller has none. Finding out
// whose they are changes nothing.
func (r *Runner) UseOwnCredentials(ctx context.Context, by driver.Identifier) error {
	settings, enabled, err := r.HubSettings(ctx, by)
	if err != nil {
		return cli.Explain(err)
	}
	words := by.Words()
	if !enabled {
		return cli.Blockedf("leave "+words.OwnFlag+" out", "this hub does not have the driver %s, so it has no use for %s credentials", by.Type(), words.Provider)
	}
	granter, user, err := by.OwnGranter(ctx, settings, r.Client, r.env.Clock)
	if err != nil {
		return err
	}
	r.Hand = &grant.Manual{Client: r.Client, Namespace: names.HubNamespace, Granter: granter, Name: user}
	r.env.Say("Using your %s credentials: %s", words.Provider, user)
	return nil
}

// sayIdentity says with whose credentials the identity of an accepted cluster was
// granted, or that of a denied one revoked.
func (r *Runner) sayIdentity(f approval.Facts) {
	switch {
	case r.Revoked(f.Name):
		r.env.Say("%s: nothing is left of what was granted outside the hub; it was revoked with your credentials.", f.Name)
	case f.Identity == nil || !f.Cluster.Spec.HubAcceptsClient || r.DryRun != approval.DryRunNone:
	case r.Granted(f.Name):
		r.env.Say("%s: %s granted with your credentials, %s.", f.Name, f.Identity.Driver.Words().Identity, r.Hand.Name)
	default:
		r.sayGranted(f)
	}
}

// sayGranted says what the hub reports about an identity that exists.
func (r *Runner) sayGranted(f approval.Facts) {
	granted := apimeta.FindStatusCondition(f.Cluster.Status.Conditions, names.ConditionRegistrationGranted)
	switch {
	case granted == nil:
	case granted.Reason == names.ReasonGranted:
		r.env.Say("%s: %s granted by the hub, with its own credentials.", f.Name, f.Identity.Driver.Words().Identity)
	case granted.Reason == names.ReasonGrantedByHand:
		r.env.Say("%s: %s", f.Name, granted.Message)
	}
}
