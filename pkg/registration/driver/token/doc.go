// Package token is the add-on registration driver that gives an add-on's agent
// a token of a ServiceAccount on the hub, requested with the credential of the
// cluster. It owns which ServiceAccount an add-on may use, how a stored token is
// evaluated and how a new one is requested.
//
// It creates nothing on the hub: the hub's add-on manager creates the ServiceAccount
// and the permission to request its tokens, and reports them in a condition.
//
// It never requests a token of another ServiceAccount than the two that
// names.AddOnServiceAccounts allows, in the namespace of its own cluster, regardless
// of the status on the hub. It does not verify the signatures of tokens, which the hub
// does, and never logs or prints a part of a token.
package token
