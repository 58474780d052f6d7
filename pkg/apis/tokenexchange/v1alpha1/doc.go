// Package v1alpha1 is the API of the token exchange on the hub: which tokens of
// managed clusters the token authorizer accepts, and which ServiceAccounts of
// the hub they become.
//
// It owns the types, their schema and the rules that the API server checks
// (CEL). What needs more than one object is left to the token authorizer,
// which reports it in the conditions.
//
// Invariant: an object that says nothing allows nothing.
//
// +kubebuilder:object:generate=true
// +groupName=tokenexchange.open-cluster-management.io
package v1alpha1

//go:generate go tool -modfile=../../../../scripts/go.tools.mod controller-gen object crd paths=. output:crd:dir=../../../../manifests/crds/tokenexchange
