package fleet

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
)

// UnknownCluster is the error about a name that no cluster of the hub has. It asks for the
// name that may have been meant; otherwise is what to try if none is near.
func UnknownCluster(ctx context.Context, hub client.Reader, name, otherwise string) error {
	return cli.NotFoundf(NearCluster(ctx, hub, name, otherwise), "the hub knows no cluster %s", name)
}

// NearCluster is the question whether another cluster was meant, or otherwise if no name is
// near.
func NearCluster(ctx context.Context, hub client.Reader, name, otherwise string) string {
	var list metav1.PartialObjectMetadataList
	list.SetGroupVersionKind(schema.GroupVersion(clusterv1.GroupVersion).WithKind("ManagedClusterList"))
	if err := hub.List(ctx, &list); err != nil {
		return otherwise // It is a suggestion only.
	}
	known := make([]string, len(list.Items))
	for i := range list.Items {
		known[i] = list.Items[i].Name
	}
	return cli.DidYouMean(name, known, otherwise)
}
