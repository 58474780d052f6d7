// Package synclabels chooses which labels of a ClusterManager or a Klusterlet are
// copied onto what its operator applies.
package synclabels
