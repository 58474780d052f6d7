package upstream

import (
	_ "embed"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installation"
)

//go:embed cluster.yaml
var cluster string

// Accept plants what OCM's hub makes for a cluster that it accepted.
func Accept(tb testing.TB, admin client.Client, name string) {
	tb.Helper()
	installation.Create(tb, admin, objects(tb, strings.ReplaceAll(cluster, "CLUSTER", name))...)
}
