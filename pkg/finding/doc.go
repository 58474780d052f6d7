// Package finding owns how a check ends and what a check is, for everything that looks at
// an installation: commands, drivers and installers.
//
// It prints nothing and makes no check.
package finding
