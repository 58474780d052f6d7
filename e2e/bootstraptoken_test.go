package e2e_test

import (
	"strings"
	"testing"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
)

// TestBootstrapToken joins with a Kubernetes bootstrap token, as clusteradm can.
func TestBootstrapToken(t *testing.T) {
	const name = "by-token"
	fleet.needs(t, "cluster3")
	fleet.leave(t, "cluster3", name)
	hub := fleet.client(t, "hub")
	fleet.must(t, "init", "--context", "hub", "--wait", "--use-bootstrap-token")
	token := fleet.must(t, "get", "token", "--context", "hub", "--use-bootstrap-token", "-o", "jsonpath={.hub-token}")
	config := fleet.config(t, "hub")
	fleet.must(t, "join", "--context", "cluster3", "--cluster-name", name, "--hub-token-file", writeFile(t, []byte(strings.TrimSpace(token))),
		"--hub-apiserver", config.Host, "--ca-file", writeFile(t, config.CAData))
	fleet.must(t, "accept", "--context", "hub", name, "--wait")
	awaitCondition(t, hub, name, clusterv1.ManagedClusterConditionAvailable)
	fleet.must(t, "unjoin", name, "--yes", "--context", "cluster3", "--hub-context", "hub", "--wait")
}
