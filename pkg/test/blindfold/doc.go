// Package blindfold hides from a client what changes, as a busy machine may.
//
// It owns the transport between a client under test and a real API server, in
// which watches that a test chooses send nothing but what there was when they
// began, until the test lets them. It never changes or drops what a server says.
//
// Its invariant: a watch that is not chosen, and any other request, passes as is.
package blindfold
