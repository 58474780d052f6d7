// Package gates turns the feature gates of an operator's resource into a
// component's flags and into a condition. A gate that is unknown, because a
// newer resource may meet an older operator, or that this version does not
// implement is named in the condition as without effect. It never stops an
// operator, and is never called valid.
//
// See docs/reference/wire-contract.md#feature-gates.
package gates
