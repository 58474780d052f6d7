package csr_test

import (
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/csr"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/drivertest"
)

func TestSetup(t *testing.T) {
	t.Parallel()
	drivertest.RunSetup(t, drivertest.SetupSuite{
		Setup:   csr.Setup{},
		Init:    []string{"--auto-approved-csr-identities=alice,bob"},
		Changed: []string{"--auto-approved-csr-identities=carol"},
	})
}
