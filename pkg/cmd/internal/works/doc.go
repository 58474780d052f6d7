// Package works owns what the commands about ManifestWorks have in common: the hub that
// serves them, the flags that choose clusters, the manifests that files contain, the
// completion of names, and the words in which the errors of pkg/work/delivery reach a
// user.
//
// It prints nothing, and prints no manifest: there may be a Secret in one.
package works
