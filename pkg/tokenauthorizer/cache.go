package tokenauthorizer

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// CacheOptions returns the content of the manager's cache for a role that reads keys
// from the hub: its only ConfigMaps have the one name that the role may read.
func CacheOptions() cache.Options {
	return cache.Options{ByObject: map[client.Object]cache.ByObject{
		&clusterv1.ManagedCluster{}: {Transform: slimCluster},
		&corev1.ConfigMap{}: {
			Field:     fields.OneTermEqualSelector("metadata.name", names.IssuerConfigMap),
			Transform: slimPublication,
		},
	}}
}

// The slim functions keep what is read. A thousand ManagedClusters with their
// claims and capacities would take more memory than all keys.

func slimCluster(in any) (any, error) {
	cluster, ok := in.(*clusterv1.ManagedCluster)
	if !ok {
		return in, nil
	}
	slim := &clusterv1.ManagedCluster{ObjectMeta: identity(cluster.ObjectMeta)}
	slim.Spec.HubAcceptsClient = cluster.Spec.HubAcceptsClient
	for _, condition := range cluster.Status.Conditions {
		if condition.Type == clusterv1.ManagedClusterConditionJoined {
			slim.Status.Conditions = append(slim.Status.Conditions, metav1.Condition{Type: condition.Type, Status: condition.Status})
		}
	}
	return slim, nil
}

func slimPublication(in any) (any, error) {
	published, ok := in.(*corev1.ConfigMap)
	if !ok {
		return in, nil
	}
	slim := &corev1.ConfigMap{ObjectMeta: identity(published.ObjectMeta), Data: map[string]string{}}
	for _, key := range []string{names.IssuerKeyIssuer, names.IssuerKeyJWKS, names.IssuerKeyProofs} {
		if value, ok := published.Data[key]; ok {
			slim.Data[key] = value
		}
	}
	return slim, nil
}

func identity(meta metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: meta.Name, Namespace: meta.Namespace, UID: meta.UID,
		ResourceVersion: meta.ResourceVersion, DeletionTimestamp: meta.DeletionTimestamp,
	}
}
