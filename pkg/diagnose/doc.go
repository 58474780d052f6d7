// Package diagnose owns how an installation is checked: it makes checks in their order, and
// has what the checks of hubs, agents, clusters, ManifestWorks, tokens and pull secrets share.
// Each of those is a package below this one.
//
// It prints nothing, and knows no flag and no terminal: a caller names the commands that an
// outcome advises. It repairs nothing.
package diagnose
