// Package signer answers which keys the cluster no longer publishes, so that
// tokens that are signed with them are replaced.
//
// It owns what is known of the cluster's key set, which it reads from the API
// server as any other ServiceAccount may, or from the Secret where OpenShift keeps
// it, and of the keys that new tokens are signed with. It verifies no token.
//
// Its invariant: a key is retired only after it was missing in several reads and
// signed nothing meanwhile, and never where the cluster signs with keys that it does not publish.
// So a key that is merely not the newest is left alone, API servers that disagree
// during a rotation cause no loop, and an API server that does not answer retires
// nothing.
package signer
