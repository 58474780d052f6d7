// Package serviceaccount selects the ServiceAccounts that have a pull secret, and
// creates and attaches it.
//
// It owns the selection, the pull secret's existence and metadata, its entry in the
// ServiceAccount's imagePullSecrets, and the annotation that names it, where there is
// one. It never reads or writes a token.
//
// Its invariants: a ServiceAccount has one pull secret, also after a reference to it was
// removed; it is listed only when it can be used; entries of others are unchanged; a
// Secret of another owner is neither changed nor deleted; if another manager keeps
// removing the entry, the controller stops adding it and reports that.
package serviceaccount
