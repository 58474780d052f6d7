// Package imagepull keeps image pull secrets for ServiceAccounts: each holds a token
// of its ServiceAccount, which is bound to the Secret, expires, and is renewed before
// it does. A registry that accepts such tokens needs no other password.
//
// Four packages answer four questions: serviceaccount, which ServiceAccounts have a
// pull secret; token, when its token is replaced; registry, for which hosts it is;
// signer, with which keys tokens may be signed. They meet in the Secrets; registry
// and signer wake the other two.
//
// It never lists all Secrets of a cluster, only those with its label, and keeps no
// token in memory.
package imagepull
