package driver

import (
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
)

// AddOn obtains and renews the credential of one registration of one add-on,
// with the cluster's own credential. An instance is made for one reconciliation
// of a ManagedClusterAddOn, of which it knows what it needs, and keeps nothing
// beyond that.
type AddOn interface {
	Credential
	// Declare returns the registration as this driver wants the add-on's
	// status to have it: with the subject that its credential is for. What
	// differs from the status is written, and nothing is obtained before.
	Declare() addonv1beta1.RegistrationConfig
}
