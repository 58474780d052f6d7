package controlplane_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
)

// variable makes this test binary one whose only test is TestHeld, which ends
// as the variable's value says.
const variable = "CONTROLPLANE_TEST_END"

var shared *controlplane.ControlPlane

func TestMain(m *testing.M) {
	if os.Getenv(variable) == "" {
		m.Run()
		return
	}
	controlplane.Main(m, &shared)
}

// TestHeld is run by TestNothingSurvives only.
func TestHeld(t *testing.T) {
	t.Parallel()
	if shared == nil {
		return
	}
	fmt.Println(controlplane.Dir(shared))
	switch os.Getenv(variable) {
	case "panic":
		panic("as the test wants")
	case "wait":
		select {}
	}
}
