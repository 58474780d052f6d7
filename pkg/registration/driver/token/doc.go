// Package token is the add-on registration driver that gives an add-on's agent
// a token of a ServiceAccount on the hub, requested with the credential of the
// cluster. It owns which ServiceAccount an add-on may
// be, how a stored token is judged and how a new one is requested.
//
// It makes nothing on the hub: the ServiceAccount and the right to request its
// tokens are the work of the hub's add-on manager, whose condition it reads.
//
// Whatever the hub's status says, it never requests a token of another
// ServiceAccount than the two that names.AddOnServiceAccounts allows, in the
// namespace of its own cluster. It neither verifies tokens, which is for the
// hub that they are shown to, nor logs or words any part of one.
package token
