// Package stsclient is the client side of the authorizer's security token
// service (RFC 8693): it exchanges a subject token for one of the hub.
//
// It owns the request, the check of the answer and the repetition of what
// may work a little later. It never stores a token and never sends one to a
// server that was not verified, or anywhere that a server points to.
package stsclient
