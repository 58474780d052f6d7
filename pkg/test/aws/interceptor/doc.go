// Package interceptor is an HTTPS proxy that answers in the place of the hosts
// that it is asked to connect to, with certificates of a CA of its own.
//
// It lets programs run against an emulator with their endpoints untouched: they
// resolve the real host names, sign for them, and need HTTPS_PROXY and a CA file
// only. It owns the CONNECT method, the CA and the certificate for each host. It
// knows nothing of what is served.
//
// Its invariant: nothing leaves the machine. A host that is not intercepted is
// refused with 403, and a connection that then names another host is closed.
package interceptor
