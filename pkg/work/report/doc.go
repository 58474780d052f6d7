// Package report owns what a ManifestWork says about itself: for the work and for each
// of its manifests whether it is applied and available, the values that came back,
// and, as one sentence, the first thing that is missing.
//
// Its functions are pure: they read no cluster and no clock. They trust a condition
// only for the generation that it was set for, so a work that was changed a moment ago
// never counts as applied. What a manifest contains can be secret and is in no report:
// a report has names, and what the agent reported.
package report
