// Package keytrust decides which public keys stand for which managed cluster.
//
// It owns the whole rule: which clusters may vouch for keys at all (Rejection), what
// a cluster publishes and which of those keys it has proven to sign with
// (Publication), and what holds when several clusters claim one key (Claim). The
// hub's controllers, the token authorizer and the commands all call it, so that
// a condition, a listing and a decision about a token cannot differ.
//
// Every function is pure: it reads no cluster, no clock and no network.
//
// Invariants: a key that a cluster published without proof never counts and
// never affects another cluster. A key never counts for two clusters under one
// issuer. A proof is bound to one key, one issuer and one ManagedCluster object,
// by name and UID, so that no other cluster, no other hub and no later cluster of
// the same name can use it.
package keytrust
