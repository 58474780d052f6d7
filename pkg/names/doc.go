// Package names owns every name that OCM components agree on: namespaces,
// service accounts, users and groups, labels, annotations, finalizers, Secret
// keys and condition reasons, and the formats built from them together with
// their parsers.
//
// It is a leaf: it never imports another package of this module, talks to no
// API server and holds no state. The source of every value is the OCM v1.3
// wire contract; a value here must not change, because the peer that reads it
// may be an upstream component.
package names
