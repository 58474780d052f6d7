// Package pass is what one pass of an operator over its resource is made of: a
// finalizer before anything is made, phases that apply what manifests render,
// the condition Applied that tells how far it came, and the lists of what was
// applied. It knows neither resource; the operators give it their values,
// reasons and names.
package pass
