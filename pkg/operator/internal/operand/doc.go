// Package operand is the common part of both operators for their operands, the
// components that a ClusterManager or a Klusterlet describes: the phases of a reconcile
// after the finalizer, the flags and gates of a component, its replicas, resources and
// pull secret, the deletion of objects that are no longer desired, and the status with
// the condition Applied.
//
// Every condition has one writer: a status write applies the operator's own and
// leaves those of an agent alone, and a status that says nothing new is not
// written. Only objects with the label of the resource and the annotation of the
// field manager are deleted, because OCM's operators set the same label
// (docs/reference/wire-contract.md#created-by).
// The package knows neither resource; the operators supply values, reasons and
// names.
package operand
