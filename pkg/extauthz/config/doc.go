// Package config reads the configuration of the token authorizer: a file, or
// the data of a ConfigMap, in our own form or in seed 002's.
//
// It owns the file format, its defaults, what is wrong with a file (everything
// at once, with line and path) and the watch on one. It fetches no keys and
// talks to no cluster: it makes what the other packages under extauthz are
// configured with.
//
// Invariant: a Config that was returned is whole and usable. Data that is
// wrong in one place gives none, so that whoever has an earlier one keeps it.
package config
