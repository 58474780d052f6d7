// Package homebrew writes the formula by which Homebrew installs the plugin.
package homebrew
