// Package imagepull keeps image pull secrets for ServiceAccounts: each holds a token
// of its ServiceAccount, which is bound to the Secret, expires, and is renewed before
// it does. A registry that accepts such tokens needs no other password.
//
// Five packages answer five questions: serviceaccount, which ServiceAccounts have a
// pull secret; token, when its token is replaced; registry, for which hosts it is;
// signer, with which keys tokens may be signed; usage, which ServiceAccounts pods run
// as. They meet in the Secrets; the last three wake the first two.
//
// With the preset of OpenShift, pull secrets have other names and marks, and package
// legacy keeps track of those from before tokens were bound.
//
// It never lists all Secrets of a cluster, only those with its label, or with the
// preset those of OpenShift's type, and keeps no token in memory.
package imagepull
