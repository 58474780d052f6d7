// Package synclabels chooses which labels of a ClusterManager or a Klusterlet are
// copied onto what its operator applies.
//
// See docs/reference/wire-contract.md#synced-labels.
package synclabels
