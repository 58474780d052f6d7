package subject_test

import (
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
)

// east is a cluster whose API server signs with an RSA key.
var east *controlplane.ControlPlane

func TestMain(m *testing.M) { controlplane.Main(m, &east) }
