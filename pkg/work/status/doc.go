// Package status owns what is reported about a ManifestWork: the conditions of each
// manifest and those of the work that sum them up, the values that feedback rules ask
// for, and the conditions that condition rules set.
//
// Observe and Applied say what is true of one manifest now. Update merges that into the
// status of a work: transition times and what was not observed this time are kept, so
// that a status changes only when what it reports does.
//
// The package reads no cluster and no clock. Feedback rules and condition rules are
// written by users of the hub: what evaluating one can cost is limited.
package status
