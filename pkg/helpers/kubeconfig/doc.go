// Package kubeconfig builds and reads the kubeconfigs that clusters and add-ons
// are given: one cluster, one user, one context. It owns the rule for those that
// are stored in a cluster: a client made from one runs no program but ours and
// uses no file but those stored with it.
//
// It opens no file and no connection, and its errors never quote a credential.
package kubeconfig
