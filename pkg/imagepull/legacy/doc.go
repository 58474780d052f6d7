// Package legacy keeps track of what OpenShift's controllers made before pull
// secrets had bound tokens: a Secret with a ServiceAccount token that never expires,
// and a pull secret with that token in it.
//
// It owns the label of those token Secrets, the binding and the finalizer of those
// pull secrets, and that of a pair the second goes when the first is deleted. It
// never reads or writes a token, and never replaces one: what is left of the
// ServiceAccount gets a pull secret with a bound token from its neighbors.
//
// Its invariants: nothing is deleted of which the other half still exists; a Secret
// that OpenShift's controllers did not make is never deleted, whatever names it; a
// pull secret that was handed over to a bound token keeps no finalizer.
package legacy
