package driver

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
)

// AddOn obtains and renews the credential of one registration of one add-on.
// An instance is made for one look at a ManagedClusterAddOn, of which it knows
// what it needs, and holds nothing beyond that.
type AddOn interface {
	// Declare returns the registration as this driver wants the add-on's
	// status to have it: with the subject that its credential is for. What
	// differs from the status is written, and nothing is obtained before.
	Declare() addonv1beta1.RegistrationConfig
	// Inspect judges the credential in the add-on's Secret: from when to when
	// it is good, or an error that says why it is no credential of this
	// registration at all, wrapping one of package credential's problems. It
	// does not look at the clock.
	Inspect(stored Data) (credential.Validity, error)
	// Obtain takes one step toward a new credential with the cluster's own
	// credential; see Agent.Obtain for what it promises.
	Obtain(ctx context.Context, hub client.Client, pending Data) (Step, error)
}
