// Package prune removes what an operator applied once and no longer wants: what
// carries the label of the operator's resource and was not applied in this
// pass. It looks only at kinds that hold no user's data.
package prune
