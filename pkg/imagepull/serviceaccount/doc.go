// Package serviceaccount answers which ServiceAccounts have a pull secret, and
// gives it to them.
//
// It owns the selection, the pull secret's existence and metadata, and its entry in
// the ServiceAccount's imagePullSecrets. It never reads or writes a token.
//
// Its invariants: a pull secret is listed only once it can be used; entries of
// others stay as they are; a Secret that is not ours is neither changed nor deleted;
// where another manager keeps removing the entry, it stops and says so.
package serviceaccount
