package hub

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/bootstrap"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/buildinfo"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/takeover"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// Plan returns what Init would do to take over a hub, with everything that would
// stop it. It writes nothing.
func (r Runner) Plan(ctx context.Context, h Values, info bootstrap.ClusterInfo) (takeover.Plan, error) {
	prepared, err := r.prepare(ctx, h, info)
	return prepared.Plan(r.Skip), err
}

// hubCRDs are the CRDs of our hub.
func hubCRDs(objs []client.Object) ([]*unstructured.Unstructured, error) {
	hub, err := manifests.RenderHubCRDs(manifests.Hub{Name: names.ClusterManagerName, Namespace: names.HubNamespace, Version: buildinfo.Version})
	return append(hub, install.CRDs(objs)...), err
}

// awaitHub waits until everything works that the steps after it rely on.
func (r Runner) awaitHub(ctx context.Context, objs []client.Object) error {
	if err := r.Await(ctx, "Waiting for the hub operator", install.DeploymentReady(names.OperatorNamespace, names.ClusterManagerOperator)); err != nil {
		return err
	}
	return r.Await(ctx, "Waiting for the hub components", hubTargets(objs)...)
}
