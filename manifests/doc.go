// Package manifests holds what is installed into clusters: the embedded YAML of
// every component and the functions that render it from a small Values struct
// per component. It owns names, RBAC, admission policies and pod specifications.
//
// It never talks to a cluster and never decides whether something is to be
// installed. Its invariant: a value reaches the YAML only as JSON, so that no
// value can change the shape of a manifest.
package manifests
