// Package resources turns the resource requirement of a ClusterManager or a
// Klusterlet into the requests and limits of containers.
package resources
