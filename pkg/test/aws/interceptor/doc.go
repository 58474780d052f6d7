// Package interceptor is an HTTPS proxy that answers in place of the hosts that clients
// connect to, with certificates of its own CA.
//
// It lets programs run against an emulator with their endpoints untouched: they
// resolve the real host names, sign for them, and need HTTPS_PROXY and a CA file
// only. It owns the CONNECT method, the CA and the certificate for each host. It knows
// nothing about the content.
//
// Its invariant: nothing leaves the machine. It rejects a host that is not intercepted
// with 403, and closes a connection that then names another host.
package interceptor
