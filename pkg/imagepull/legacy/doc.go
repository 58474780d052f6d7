// Package legacy tracks the Secrets that OpenShift's controllers created before pull
// secrets had bound tokens: a Secret with a ServiceAccount token that never expires, and
// a pull secret with that token.
//
// It owns the label of those token Secrets, the binding annotation and the finalizer of
// those pull secrets, and deletes one of a pair after the other was deleted. It never
// reads, writes or replaces a token: its sibling packages give the ServiceAccount a pull
// secret with a bound token.
//
// Its invariants: it deletes no Secret whose counterpart exists, and no Secret that
// OpenShift's controllers did not create; a pull secret that was handed over to a bound
// token has no finalizer.
package legacy
