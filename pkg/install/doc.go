// Package install owns what the installations of a hub, of a managed cluster's agent and of
// the image pull secret controller have in common. The verbs are in its directories: hub
// (init, clean), agent (join), leave (unjoin) and pullsecrets.
//
// A verb is a list of phases over what its run has found. Values say what is wanted; facts
// are gathered from the cluster; pure checks compare both and report every finding at once;
// objects are rendered, applied in stages and waited for. A value that is not set retains
// what is live, so that running again repairs and never resets. Every phase can be repeated
// after a crash at any write.
//
// The package reads no flag, prints nothing and never handles a credential that it was not
// given for the cluster that it writes to.
package install
