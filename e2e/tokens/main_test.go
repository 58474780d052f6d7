package tokens_test

import (
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
)

// hub is the hub of all tests. Each uses namespaces of its own. Its audit log says who
// minted which token.
var hub *controlplane.ControlPlane

func TestMain(m *testing.M) { controlplane.Main(m, &hub, controlplane.WithAuditLog()) }
