package drivertest_test

import (
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/drivertest"
)

func TestFakeSetup(t *testing.T) {
	t.Parallel()
	drivertest.RunSetup(t, drivertest.SetupSuite{
		Setup:   drivertest.FakeSetup{Outside: drivertest.NewOutside()},
		Init:    []string{"--fake-hub=h1"},
		Join:    []string{"--fake-hub=h1", "--fake-id=one"},
		Changed: []string{"--fake-hub=h2"},
	})
}
