package csr

import (
	"errors"

	"github.com/spf13/pflag"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

const flagUsers = "auto-approved-csr-identities"

// initFlags are the flags of init.
type initFlags struct{ users []string }

// AddTo implements driver.InitFlags.
func (f *initFlags) AddTo(flags *pflag.FlagSet) {
	flags.StringSliceVar(&f.users, flagUsers, nil, "users whose requests are approved without a person")
}

// Complete implements driver.InitFlags: a kubeconfig says nothing about this driver.
func (*initFlags) Complete(string) {}

// Missing implements driver.InitFlags.
func (*initFlags) Missing() []driver.Question { return nil }

// Settings implements driver.InitFlags.
func (f *initFlags) Settings(facts driver.InitFacts) (driver.HubSettings, error) {
	settings := driver.HubSettings{Driver: operatorv1.RegistrationDriverHub{AuthType: string(driver.CSR)}}
	if len(f.users) == 0 {
		return settings, nil
	}
	settings.Driver.CSR = &operatorv1.CSRConfig{AutoApprovedIdentities: f.users}
	if !facts.AutoApproval {
		return settings, errors.New("--" + flagUsers + " needs --feature-gates=ManagedClusterAutoApproval=true")
	}
	return settings, nil
}

// joinFlags and acceptFlags are empty: every Klusterlet has a setting for the lifetime
// of certificates, and every acceptance selects a key.
type joinFlags struct{}

// AddTo implements driver.JoinFlags.
func (joinFlags) AddTo(*pflag.FlagSet) {}

// Complete implements driver.JoinFlags.
func (joinFlags) Complete(string) {}

// Missing implements driver.JoinFlags.
func (joinFlags) Missing() []driver.Question { return nil }

// Settings implements driver.JoinFlags.
func (joinFlags) Settings() (operatorv1.RegistrationDriver, error) {
	return operatorv1.RegistrationDriver{AuthType: string(driver.CSR)}, nil
}

type acceptFlags struct{}

// AddTo implements driver.AcceptFlags.
func (acceptFlags) AddTo(*pflag.FlagSet) {}

// Acceptance implements driver.AcceptFlags.
func (acceptFlags) Acceptance(driver.AuthType) (driver.Acceptance, error) {
	return driver.Acceptance{}, nil
}
