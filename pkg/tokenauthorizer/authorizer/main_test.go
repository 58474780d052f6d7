package authorizer_test

import (
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
)

// hub is a real hub; it may also stand for a managed cluster that is one.
var hub *controlplane.ControlPlane

func TestMain(m *testing.M) { controlplane.Main(m, &hub) }
