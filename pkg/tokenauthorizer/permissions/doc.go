// Package permissions owns the state of a hub behind the least permissions of the rules: the
// namespaces and clusters that patterns match, and the Roles of rules that no longer exist.
//
// It only reads. Which permissions the rules need is decided by package policy.
package permissions
