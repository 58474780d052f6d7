// Package config makes the configuration of the token authorizer: from the
// TokenExchangePolicies and TokenExchangeDefaults of a hub, or from a file with
// the same types, or from one in tokensmith's form.
//
// It owns the file format, the defaults, what is wrong with a configuration
// (everything at once, with its path) and the watch on a file. It fetches no keys
// and talks to no cluster: it makes what the other packages under tokenauthorizer are
// configured with.
//
// Invariants: a file that is wrong in one place gives no Config, so that a caller that
// has an earlier one keeps it. An object of the hub that is wrong denies
// everything to its cluster, and changes nothing for any other.
package config
