// Package publish publishes a cluster's token issuer in the cluster's namespace on the
// hub: the ConfigMap names.IssuerConfigMap with the issuer and its public keys.
//
// It owns reading them from the cluster's own API server, the self-test that proves
// that the API server signs with these keys, and keeping the ConfigMap as read. It
// never decides what the hub trusts, never publishes a key that the API server did not
// serve together with the others, and never shows a token to any server but the cluster
// that made it.
//
// Its invariant: the ConfigMap holds a key set that verified a token of this
// cluster when it was written, and its publishedAt moves only with the data.
package publish
