// Command localkube is a Kubernetes control plane in one binary: etcd,
// kube-apiserver, kube-controller-manager and kube-scheduler as they are
// released, and kubectl, so that a bare machine has one. It runs the program
// that it is called by the name of, or that its first argument names:
//
//	localkube kube-apiserver --help
//	ln -s localkube kubectl && ./kubectl version
//
// It is a module of its own, because k8s.io/kubernetes and the etcd server must
// not decide the dependencies of the product. It holds no logic: the
// arguments of the programs are in pkg/local/controlplane. Build it with
// "make localkube".
package main
