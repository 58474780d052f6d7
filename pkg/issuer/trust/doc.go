// Package trust judges on the hub what clusters publish about their token
// issuers, and says so in the condition names.ConditionIssuerTrusted of their
// ManagedClusters.
//
// It owns that condition and the end of what was published: a cluster that is
// denied or leaves loses its ConfigMap. It never writes key sets, never looks
// outside the ConfigMaps called names.IssuerConfigMap, and is not what the token
// authorizer believes: that reads the same objects and judges for itself.
//
// Its invariant: where the condition is True, the cluster is accepted and has
// joined, its keys can be used, and no other cluster that is accepted publishes
// one of them.
package trust
