// Package legacytokens is the "legacy-tokens" command: it lists the Secrets with
// tokens of ServiceAccounts that never expire, and takes them out of service step
// by step.
//
// It owns the flags, what is selected, and what is printed; pkg/legacytoken finds
// and decides. It never prints a token, and changes nothing without --dry-run=none.
package legacytokens
