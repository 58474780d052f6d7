// Package e2e holds the end-to-end suite: the real binary, real control planes
// and the RBAC of the manifests, used as a user uses them. It imports nothing
// but names and schemes of the product; what it knows, it sees from outside.
//
// Its add-ons are programs of other modules: the sample add-on of
// examples/heartbeat, and upstream's managed-serviceaccount as it was released.
// `make e2e-addons` builds both. The registry that its clusters pull from is one as
// well; `make e2e-registry` builds it.
//
// One suite, two environments. By default it starts its own local clusters.
// With E2E_ENVIRONMENT=kind it uses the contexts hub, cluster1 and cluster2 of
// $KUBECONFIG, the image E2E_IMAGE, and the address E2E_HUB_APISERVER of the hub for
// the managed clusters.
package e2e
