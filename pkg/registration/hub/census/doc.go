// Package census says of each ManagedCluster what state it is in, from the conditions that
// the hub and its agent set, and counts the clusters in each state for the metric
// ocm_clusters. It decides nothing and writes nothing: what is late is decided where the
// conditions are set.
package census
