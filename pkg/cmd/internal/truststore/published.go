package truststore

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// Publication is what a managed cluster publishes about its token issuer.
type Publication struct {
	Cluster string
	Issuer  string
	JWKS    []byte
	// Distrusted says why the token authorizer does not take the keys; empty
	// when it does.
	Distrusted string
}

// Published returns what the managed clusters publish on the hub, by cluster.
func Published(ctx context.Context, hub client.Client) ([]Publication, error) {
	var maps corev1.ConfigMapList
	if err := hub.List(ctx, &maps, client.MatchingFields{"metadata.name": names.IssuerConfigMap}); err != nil {
		return nil, fmt.Errorf("published issuers: %w", err)
	}
	var clusters clusterv1.ManagedClusterList
	if err := hub.List(ctx, &clusters); err != nil {
		return nil, fmt.Errorf("managed clusters: %w", err)
	}
	byName := map[string]*clusterv1.ManagedCluster{}
	for i := range clusters.Items {
		byName[clusters.Items[i].Name] = &clusters.Items[i]
	}
	var out []Publication
	for i := range maps.Items {
		m := &maps.Items[i]
		out = append(out, Publication{
			Cluster: m.Namespace, Issuer: m.Data[names.IssuerKeyIssuer], JWKS: []byte(m.Data[names.IssuerKeyJWKS]),
			Distrusted: distrusted(byName[m.Namespace]),
		})
	}
	slices.SortFunc(out, func(a, b Publication) int { return strings.Compare(a.Cluster, b.Cluster) })
	return out, nil
}

// distrusted says why a cluster's keys do not count.
func distrusted(cluster *clusterv1.ManagedCluster) string {
	switch {
	case cluster == nil:
		return "the namespace is not that of a managed cluster"
	case !cluster.Spec.HubAcceptsClient:
		return "the hub has not accepted the cluster"
	case !cluster.DeletionTimestamp.IsZero():
		return "the cluster is being removed"
	case !apimeta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1.ManagedClusterConditionHubAccepted):
		return "the hub has not carried out the acceptance of the cluster yet"
	case !apimeta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1.ManagedClusterConditionJoined):
		return "the cluster has not joined"
	}
	return ""
}
