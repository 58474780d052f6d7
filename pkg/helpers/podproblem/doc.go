// Package podproblem says in one sentence why the Pods of a Deployment do not
// run: an image that cannot be pulled, with its name, a container that crashes,
// a Pod that fits on no node.
package podproblem
