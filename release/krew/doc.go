// Package krew writes the manifest by which krew installs the plugin.
package krew
