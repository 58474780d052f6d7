// Package prune removes what an operator applied once and no longer wants: what
// carries the label of the operator's resource and the annotation of its field
// manager, and was not applied in this pass. The label alone is not enough,
// because upstream's operators put the same one onto what they apply
// (docs/reference/wire-contract.md#created-by). It looks
// only at kinds that hold no user's data.
package prune
