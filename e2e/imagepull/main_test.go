package imagepull_test

import (
	"testing"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
)

// cluster is shared: the controllers of each test see the namespaces of theirs alone.
var cluster *controlplane.ControlPlane

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	controlplane.Main(m, &cluster)
}
