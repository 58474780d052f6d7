package csr

import (
	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/argument"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// Setup is the driver.Setup of csr.
type Setup struct{}

var _ driver.Setup = Setup{}

// Type implements driver.Setup.
func (Setup) Type() driver.AuthType { return driver.CSR }

// Aliases implements driver.Setup.
func (Setup) Aliases() []string { return nil }

// InitFlags implements driver.Setup.
func (Setup) InitFlags() driver.InitFlags { return &initFlags{} }

// JoinFlags implements driver.Setup.
func (Setup) JoinFlags() driver.JoinFlags { return joinFlags{} }

// AcceptFlags implements driver.Setup.
func (Setup) AcceptFlags() driver.AcceptFlags { return acceptFlags{} }

// AccountKeys implements driver.Setup.
func (Setup) AccountKeys() []string { return nil }

// Retain implements driver.HubSetup.
func (Setup) Retain(wanted, live driver.HubSettings) driver.HubSettings {
	if wanted.Driver.CSR == nil {
		wanted.Driver.CSR = live.Driver.CSR
	}
	return wanted
}

// ValidateHub implements driver.HubSetup: every user may be named.
func (Setup) ValidateHub(driver.HubSettings) error { return nil }

// HubRuntime implements driver.HubSetup.
func (Setup) HubRuntime(settings driver.HubSettings) driver.Runtime {
	if settings.Driver.CSR == nil || len(settings.Driver.CSR.AutoApprovedIdentities) == 0 {
		return driver.Runtime{}
	}
	return driver.Runtime{Args: []string{"--auto-approved-csr-users=" + argument.List(settings.Driver.CSR.AutoApprovedIdentities...)}}
}

// Grants implements driver.HubSetup: a certificate is granted by the hub's own API.
func (Setup) Grants() driver.Grants { return driver.Grants{} }

// ValidateAgent implements driver.AgentSetup: the driver has no settings of its own.
func (Setup) ValidateAgent(operatorv1.RegistrationDriver) error { return nil }

// HubID implements driver.AgentSetup: the address of the hub is all that identifies it.
func (Setup) HubID(operatorv1.RegistrationDriver) string { return "" }

// AgentRuntime implements driver.AgentSetup: the agent registers with csr by default.
func (Setup) AgentRuntime(operatorv1.RegistrationDriver) driver.Runtime { return driver.Runtime{} }
