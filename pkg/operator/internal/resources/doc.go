// Package resources turns the resource requirement of a ClusterManager or a
// Klusterlet into the requests and limits of containers.
//
// See docs/reference/wire-contract.md#resource-requirement.
package resources
