// Package controlplane runs one real Kubernetes control plane from the
// localkube binary: etcd, API server, controller manager and, if wanted,
// scheduler, each a process of its own, on the loopback interface.
//
// It owns a state directory: keys and certificates (pki/), etcd's data, the
// port of the API server and the logs. Starting again in the same directory
// continues the same cluster under the same address and CA.
//
// Nothing listens where another user could reach it without a credential:
// etcd is on a Unix socket in the state directory (mode 0700), controller
// manager and scheduler serve nothing, the API server is on 127.0.0.1 with TLS
// and authentication. The port is reserved by a socket that shares it, so that
// it cannot be lost between picking and binding, nor while the API server is
// down.
//
// The Endpoints and EndpointSlice controllers are off: the API refuses
// loopback addresses in Endpoints, and local pods have no others. What
// resolves Services instead is the egress proxy of pkg/local.
//
// It restarts nothing on its own; pkg/local supervises.
package controlplane
