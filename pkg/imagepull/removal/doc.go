// Package removal removes pull secrets after their controller was stopped: first their
// entries in imagePullSecrets, so that new Pods do without them, then the Secrets.
//
// It owns what counts as left behind, and the order. It stops no controller. What happens to
// Secrets that Pods still name is the choice of its caller, as a Mode.
//
// Its invariant: it deletes no Secret whose entry is still listed, and none that the
// controller did not make. Every step can be repeated after an interruption.
package removal
