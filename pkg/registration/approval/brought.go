package approval

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// defaultLease is the duration of a cluster's lease in seconds that the API server fills in.
const defaultLease = 60

// Brought describes what a cluster has besides its name, a line each: labels, annotations,
// finalizers, owners, taints, a lease of its own duration, and the addresses of its API
// server. Until the cluster is accepted, they are the choice of the cluster, or of the
// administrator who created the ManagedCluster. Finalizers and taints of the hub's controllers
// are left out. Values that may have any character are quoted, and shortened.
func Brought(cluster *clusterv1.ManagedCluster) []string {
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	for _, key := range slices.Sorted(maps.Keys(cluster.Labels)) {
		add("label %s=%s", key, cluster.Labels[key])
	}
	for _, key := range slices.Sorted(maps.Keys(cluster.Annotations)) {
		if key == names.AnnotationClusterID {
			continue // Every cluster has one, and the hub compares it with those of others.
		}
		add("annotation %s=%q", key, shorten(cluster.Annotations[key]))
	}
	for _, finalizer := range cluster.Finalizers {
		if !names.OfHub(finalizer) {
			add("finalizer %s", finalizer)
		}
	}
	for _, owner := range cluster.OwnerReferences {
		add("owner %q %q", owner.Kind, owner.Name)
	}
	for _, taint := range cluster.Spec.Taints {
		if !names.OfHub(taint.Key) {
			add("taint %s=%q:%s", taint.Key, shorten(taint.Value), taint.Effect)
		}
	}
	if seconds := cmp.Or(cluster.Spec.LeaseDurationSeconds, defaultLease); seconds != defaultLease {
		add("a lease of %d seconds", seconds)
	}
	for _, config := range cluster.Spec.ManagedClusterClientConfigs {
		add("API server %q", shorten(config.URL))
	}
	return lines
}

// widest is how much is shown of one value, in bytes: an annotation may have 256 KiB.
const widest = 128

func shorten(value string) string {
	if len(value) <= widest {
		return value
	}
	return value[:widest] + "..."
}

// discard removes what a cluster brought, except for what it registers by: annotations of
// agents, and the addresses of its API server. The hub's controllers write again what is theirs.
func discard(cluster *clusterv1.ManagedCluster) {
	cluster.Labels, cluster.OwnerReferences = nil, nil
	maps.DeleteFunc(cluster.Annotations, func(key, _ string) bool { return !strings.HasPrefix(key, names.AnnotationAgentPrefix) })
	cluster.Finalizers = slices.DeleteFunc(cluster.Finalizers, func(finalizer string) bool { return !names.OfHub(finalizer) })
	cluster.Spec.Taints = slices.DeleteFunc(cluster.Spec.Taints, func(taint clusterv1.Taint) bool { return !names.OfHub(taint.Key) })
	cluster.Spec.LeaseDurationSeconds = defaultLease
}
