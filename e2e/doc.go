// Package e2e holds the end-to-end suite: the real binary, real control planes
// and the RBAC of the manifests, used as a user uses them. It imports nothing
// but names and schemes of the product; what it knows, it sees from outside.
//
// Its add-ons are programs of other modules: the sample add-on of
// examples/heartbeat, and upstream's managed-serviceaccount as it was released.
// The registry that its clusters pull from is one as well.
//
// One suite, two environments. By default it starts its own local clusters. With
// E2E_ENVIRONMENT=kind it uses clusters in containers, which have the images already:
//
//	KUBECONFIG  has the contexts hub and cluster1 to cluster4, with addresses that Pods
//	            reach as well; tests that need cluster3 or cluster4 are skipped where
//	            there is none
//	E2E_HOST    is where Pods reach what a test serves
//
// `make e2e-kind` creates them with the program in e2e/kind. Tests of what only nodes
// show are there as well, in e2e/kind/nodes. What is about EKS runs on local clusters
// only, because it starts API servers with flags of its own.
package e2e
