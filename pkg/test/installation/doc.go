// Package installation applies our manifests to the control plane of a test.
//
// It owns the common part of tests: everything that an operator applies for the
// controllers of a hub, or some kinds of it. It never writes an object that the
// manifests do not render, so that a test has the permissions of an installed
// component.
//
// Its invariant: a CustomResourceDefinition that it installed is served.
package installation
