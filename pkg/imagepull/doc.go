// Package imagepull keeps image pull secrets for ServiceAccounts: each holds a token
// of its ServiceAccount, which is bound to the Secret, expires, and is renewed before
// it does. A registry that accepts such tokens needs no other password.
//
// Five packages answer five questions: serviceaccount, which ServiceAccounts have a
// pull secret; token, when its token is replaced; registry, for which hosts it is;
// signer, with which keys tokens may be signed; usage, which ServiceAccounts pods run
// as. They meet in the Secrets; the last three wake the first two.
//
// It never lists all Secrets of a cluster, only those with its label, and keeps no
// token in memory.
package imagepull
