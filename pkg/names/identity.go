package names

import "strings"

const (
	userPrefix           = "system:open-cluster-management:"
	serviceAccountPrefix = "system:serviceaccount:"
)

// GroupManagedClusters is the group of every cluster's agent.
const GroupManagedClusters = userPrefix + "managed-clusters"

// ClusterGroup is the group that the agent of a cluster authenticates with
// when it holds a client certificate.
func ClusterGroup(cluster string) string { return userPrefix + cluster }

// MappedClusterGroup is the group that the agent of a cluster is mapped to by a
// provider that refuses groups that begin with "system:".
// See docs/reference/wire-contract.md#agent-identity.
func MappedClusterGroup(cluster string) string { return "open-cluster-management:" + cluster }

// MappedClusterUser is the user that a provider maps the agent of a cluster to. It has a
// prefix, unlike the one that OCM chooses, which is the cluster's name: a cluster
// could be called like a user of the hub.
func MappedClusterUser(cluster string) string { return MappedClusterGroup(cluster) }

// AgentUser is the user, and the common name, of a cluster's agent.
// See docs/reference/wire-contract.md#agent-identity.
func AgentUser(cluster, agent string) string { return userPrefix + cluster + ":" + agent }

// ParseAgentUser is the inverse of AgentUser. It reports false unless user has
// the prefix and exactly two non-empty parts behind it.
func ParseAgentUser(user string) (cluster, agent string, ok bool) {
	rest, ok := strings.CutPrefix(user, userPrefix)
	if !ok {
		return "", "", false
	}
	cluster, agent, ok = strings.Cut(rest, ":")
	if !ok || cluster == "" || agent == "" || strings.Contains(agent, ":") {
		return "", "", false
	}
	return cluster, agent, true
}

// ServiceAccountUser is the user that a ServiceAccount authenticates as.
func ServiceAccountUser(namespace, name string) string {
	return serviceAccountPrefix + namespace + ":" + name
}
