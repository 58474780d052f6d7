// Package serviceaccount answers which ServiceAccounts have a pull secret, and
// gives it to them.
//
// It owns the selection, the pull secret's existence and metadata, its entry in the
// ServiceAccount's imagePullSecrets, and the annotation that names it, where there is
// one. It never reads or writes a token.
//
// Its invariants: a ServiceAccount has one pull secret, whoever removes what names it;
// it is listed only once it can be used; entries of others stay as they are; a Secret
// that is not ours is neither changed nor deleted; where another manager keeps
// removing the entry, it stops and says so.
package serviceaccount
