// Package node is the node of a local cluster: it registers a Node, takes the
// Pods that the scheduler binds to it and runs their containers as local
// processes, with status, probes, restarts, logs and volumes as a kubelet would.
//
// It acts as a kubelet also towards the API server: its identity is
// system:node:<name> in the group system:nodes, so that the Node authorizer and
// the NodeRestriction admission plugin limit it as they limit a real one.
//
// Images. There is no registry: Images maps a reference to an executable, which
// is the image's entrypoint and its only file. A container's command, if it has
// one, must begin with that executable, by its base name or as "/name"; the rest
// are arguments. Any other command fails, as it would in an image that holds
// nothing else. A Pod with an unmapped image stays Pending with ErrImagePull.
//
// Addresses. Each Pod has a loopback address of its own, 127.x.y.z, on the
// network of the host; x and y belong to the cluster. A process must bind to
// $(POD_IP), or it takes the port from every other Pod. There is no cluster DNS
// and no ClusterIP that a Pod could reach; KUBERNETES_SERVICE_HOST and _PORT
// lead to the API server.
//
// What is not there: exec and attach, exec probes, lifecycle hooks, sidecar
// containers (init containers with a restart policy), subPath, hostPath and
// persistent volumes, resource limits, users other than the one who runs the
// node. A setting that matters and is not supported is reported by an event, or the
// Pod stays Pending; security settings are met as far as an unprivileged user can
// (read-only root, no capabilities, no new privileges).
//
// Its invariant: one goroutine owns each Pod, and no process outlives the node.
package node
