// Package egress is the way from a local cluster's API server to its Services,
// Pods and nodes: an HTTP CONNECT proxy on a Unix socket, which the API server's
// egress selector "cluster" points at. It stands in for kube-proxy and cluster
// DNS: a Service, by ClusterIP or by name, becomes the address and port of a
// ready Pod behind it.
//
// It asks the API server at every connection and remembers nothing; there are
// few, because the API server keeps them open. Services without a selector lead
// nowhere.
package egress
