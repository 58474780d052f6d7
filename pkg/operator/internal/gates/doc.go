// Package gates turns the feature gates of an operator's resource into a
// component's flag and into the condition that reports gates nobody knows. An
// unknown gate is reported and never stops an operator, because a newer
// resource may meet an older operator.
package gates
