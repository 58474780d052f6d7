// Package work owns the checks of one ManifestWork on the hub: whether it reached the agent, its
// executor is allowed to apply it, and its resources are available and ready.
//
// It only reads and prints nothing, and no outcome contains a manifest.
package work
