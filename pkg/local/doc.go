// Package local runs local clusters: on a bare Linux machine, without Docker
// and without root, a hub and managed clusters, each a real control plane and
// one node whose Pods are local processes.
//
// Everything is in one directory. Each cluster has a supervisor, a process of
// our own binary that is detached from the command that started it: it owns the
// cluster's control plane (controlplane), node (node) and the way from the one
// to the other (egress), restarts what dies, and writes down what it sees. What
// it owns dies with it, so that a cluster either has a supervisor or has no
// process at all; a lock that the kernel releases shows whether it has one.
//
// Up, Down, Status, Kubeconfig and Logs may be called at any time and from
// anywhere; Up and Down exclude each other. Up continues what an interrupted Up
// or a crash has left. Two directories or two users do not meet: ports and
// addresses are picked, not fixed.
//
// It never touches a kubeconfig outside its directory.
package local
