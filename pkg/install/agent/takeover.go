package agent

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/buildinfo"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/takeover"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// Plan returns what Install would do to take over an agent, with everything that would stop
// it. It writes nothing.
func (r Runner) Plan(ctx context.Context, k Values) (takeover.Plan, error) {
	prepared, err := r.prepare(ctx, k, nil)
	return prepared.Plan(r.Skip), err
}

// agentCRDs are the CRDs of our agent.
func agentCRDs(objs []client.Object) ([]*unstructured.Unstructured, error) {
	agent, err := manifests.RenderKlusterletCRDs(manifests.Klusterlet{Name: names.KlusterletName, Version: buildinfo.Version})
	return append(agent, install.CRDs(objs)...), err
}
