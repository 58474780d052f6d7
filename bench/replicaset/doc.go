// Package replicaset measures what a ManifestWorkReplicaSet costs on a hub with many
// clusters: the process that "controller hub" is, with the feature gate, against a real
// API server. The benchmark plays the work agents. Run it with make bench, or alone with
//
//	BENCH=ReplicaSet make bench
//
// BENCH_CLUSTERS changes the number of clusters, which is 1,000.
package replicaset
