// Package permissions owns what a hub has that the least permissions of the rules depend on:
// the namespaces and clusters that patterns stand for, and the Roles of rules that are gone.
//
// It only reads. Which permissions the rules need is decided by package policy.
package permissions
