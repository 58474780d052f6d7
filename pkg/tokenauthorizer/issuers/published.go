package issuers

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/keytrust"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// Candidates returns the clusters of a hub by name, each with what it publishes.
// What lies in the namespace of no cluster is left out: it counts for no cluster.
func Candidates(ctx context.Context, hub client.Reader) ([]keytrust.Candidate, error) {
	var clusters clusterv1.ManagedClusterList
	if err := hub.List(ctx, &clusters); err != nil {
		return nil, fmt.Errorf("managed clusters: %w", err)
	}
	var maps corev1.ConfigMapList
	if err := hub.List(ctx, &maps, client.MatchingFields{"metadata.name": names.IssuerConfigMap}); err != nil {
		return nil, fmt.Errorf("published issuers: %w", err)
	}
	data := make(map[string]map[string]string, len(maps.Items))
	for i := range maps.Items {
		if m := &maps.Items[i]; m.DeletionTimestamp.IsZero() && m.Data != nil {
			data[m.Namespace] = m.Data
		}
	}
	list := make([]keytrust.Candidate, len(clusters.Items))
	for i := range clusters.Items {
		cluster := &clusters.Items[i]
		list[i] = keytrust.Candidate{Cluster: keytrust.ClusterOf(cluster), Data: data[cluster.Name]}
	}
	return list, nil
}

// Publishers returns which clusters of list publish the key with a thumbprint.
func Publishers(list []keytrust.Candidate) func(thumbprint string) []keytrust.Candidate {
	holders := make(map[string][]keytrust.Candidate)
	for _, candidate := range list {
		for _, thumbprint := range keytrust.Thumbprints(candidate.Data) {
			holders[thumbprint] = append(holders[thumbprint], candidate)
		}
	}
	return func(thumbprint string) []keytrust.Candidate { return holders[thumbprint] }
}
