// Package fleet is what the benchmarks of a hub's processes have in common: a
// number of simulated managed clusters, how they are called, and work on all of
// them. It knows nothing of what is measured; see measure.
package fleet
