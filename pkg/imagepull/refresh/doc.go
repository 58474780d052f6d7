// Package refresh owns how the controller is requested to replace the tokens of pull secrets:
// which pull secrets a request is about, the request, and the wait until each has another
// token.
//
// It issues no token: the controller does, in place.
package refresh
