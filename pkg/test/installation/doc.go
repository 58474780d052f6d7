// Package installation puts our manifests onto the control plane of a test.
//
// It owns what tests have in common of that: all that an operator applies for
// the controllers of a hub, or some kinds of it. It never writes an object that
// the manifests do not render, so that what a test may do is what an installed
// component may.
//
// Its invariant: a CustomResourceDefinition that it installed is served.
package installation
