package leave

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// Resign reports to the hub, with the agent's own credential, that the cluster
// leaves: it sets hubAcceptsClient to false, and the hub revokes everything that it
// granted. The agent may update its own cluster, but not patch it.
// A cluster that is gone has resigned already, and so has an agent that may not
// read its cluster: the hub takes that right from those that left.
func Resign(ctx context.Context, hub client.Client, cluster string) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		live := &clusterv1.ManagedCluster{}
		err := hub.Get(ctx, client.ObjectKey{Name: cluster}, live)
		if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
			return nil
		} else if err != nil {
			return err
		}
		if !live.Spec.HubAcceptsClient {
			return nil
		}
		live.Spec.HubAcceptsClient = false
		live.Annotations = install.MergeMap(live.Annotations, map[string]string{names.AnnotationLeft: "true"})
		return client.IgnoreNotFound(hub.Update(ctx, live))
	})
}
