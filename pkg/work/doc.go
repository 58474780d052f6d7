// Package work is the tree of OCM's ManifestWorks: what a work says
// (pkg/work/manifest) and what is reported about it (pkg/work/status), as pure rules
// that the agent on the managed cluster and the commands of an administrator share,
// and the agent itself.
//
// The package has no code. Hub and agent never share more than the objects on the
// API server: a work that one implementation wrote means the same to the other.
package work
