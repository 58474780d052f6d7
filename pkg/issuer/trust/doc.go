// Package trust reports on the hub which of the keys that clusters publish count,
// in the condition names.ConditionIssuerTrusted of their ManagedClusters.
//
// It owns that condition and the end of what was published: a cluster that is
// denied or detached loses its ConfigMap. It never writes key sets, never looks
// outside the ConfigMaps called names.IssuerConfigMap, and decides nothing by
// itself: package keytrust does, for the token authorizer as well.
//
// Its invariant: where the condition is True, the cluster is accepted and has
// joined, has proven that it signs with a key, and no other cluster has proven
// the same of one of its keys.
package trust
