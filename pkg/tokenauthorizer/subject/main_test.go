package subject_test

import (
	"flag"
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
)

// east is a cluster whose API server signs with an RSA key.
var east *controlplane.ControlPlane

func TestMain(m *testing.M) {
	flag.Parse()
	if worker := flag.Lookup("test.fuzzworker"); worker != nil && worker.Value.String() == "true" {
		m.Run() // Fuzzing needs no cluster.
		return
	}
	controlplane.Main(m, &east)
}
