// Package manifest owns what a ManifestWork says: its manifests in the order of the
// spec and in the order of applying them, the configuration that matches each, which
// objects stay when the work is deleted, and which works are invalid.
//
// Its functions are pure: they read no cluster and no clock, and change no argument.
// What a manifest contains can be secret and appears in no error.
package manifest
