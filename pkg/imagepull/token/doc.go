// Package token decides when the token in a pull secret must be replaced, and replaces
// it.
//
// It owns the data of pull secrets: a token of the ServiceAccount, bound to the
// Secret and for the registries' audience, as the credential for every registry
// host. It also deletes the pull secrets of ServiceAccounts that are gone. It never
// creates a Secret and never touches a ServiceAccount.
//
// Its invariants: a token is requested once for each renewal, even with a stale cache,
// and never twice in a minute for one Secret; the most urgent Secret is first; it
// writes and deletes only Secrets that a ServiceAccount owns.
package token
