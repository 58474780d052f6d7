package driver

import (
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
)

// AddOn obtains and renews the credential of one registration of one add-on, with the
// cluster's own credential. Each reconciliation of a ManagedClusterAddOn creates an
// instance, which takes what it needs from that object and keeps nothing beyond it.
type AddOn interface {
	Credential
	// Declare returns the registration as this driver wants the add-on's
	// status to have it: with the subject that its credential is for. What
	// differs from the status is written, and nothing is obtained before.
	Declare() addonv1beta1.RegistrationConfig
}
