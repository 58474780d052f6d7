// Package imagepull holds the end-to-end tests of image pull secrets: a real
// control plane, a real registry that takes tokens of ServiceAccounts for
// passwords, and a real client that reads pull secrets as a kubelet does.
//
// The registry checks tokens in one of two ways, and the tests say where they
// differ: by asking the cluster about each (TokenReview), or by the keys that the
// cluster publishes.
package imagepull
