package tokens_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
)

// hub is the hub of all tests. Each uses namespaces of its own.
var hub *controlplane.ControlPlane

// auditLog is where the hub's API server writes who minted which token.
var auditLog string

// auditPolicy has TokenRequests written down and nothing else.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  verbs: [create]
  resources:
  - {group: "", resources: [serviceaccounts/token]}
- level: None
`

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "ocm-tokens-")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	policy := filepath.Join(dir, "policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		panic(err)
	}
	auditLog = filepath.Join(dir, "audit.log")
	controlplane.Main(m, &hub, controlplane.WithAPIServerArgs(
		"--audit-policy-file="+policy, "--audit-log-path="+auditLog, "--audit-log-mode=blocking-strict"))
}
