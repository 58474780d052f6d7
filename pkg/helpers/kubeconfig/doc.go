// Package kubeconfig builds and reads the kubeconfigs that clusters and add-ons
// are given: one cluster, one user, one context. It opens no file and no
// connection, and its errors never quote a credential.
package kubeconfig
