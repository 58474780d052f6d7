package driver

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// GrantedClusters returns the names of the clusters to which a driver has granted
// something outside the hub's API, by the records in the hub's namespace.
func GrantedClusters(ctx context.Context, reader client.Reader, namespace string, kind AuthType) ([]string, error) {
	var records corev1.ConfigMapList
	if err := reader.List(ctx, &records, client.InNamespace(namespace), client.MatchingLabels{names.LabelGrant: string(kind)}); err != nil {
		return nil, fmt.Errorf("records of grants by the driver %s: %w", kind, err)
	}
	var clusters []string
	for i := range records.Items {
		clusters = append(clusters, records.Items[i].Labels[names.LabelClusterName])
	}
	slices.Sort(clusters)
	return slices.Compact(clusters), nil
}
