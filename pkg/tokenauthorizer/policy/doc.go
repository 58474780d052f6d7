// Package policy decides what an identity may become on the hub: allow rules
// per cluster, the mapping to a hub ServiceAccount, and the absolute deny list.
//
// It owns the rules' meaning, what is wrong with them (lint) and the least RBAC
// that they need. It does no I/O and keeps no state: the same identity under the
// same rules has the same answer always.
//
// Invariant: no rule, no target. Nothing that a token says can name a target
// outside the namespaces that its cluster's rules name.
package policy
