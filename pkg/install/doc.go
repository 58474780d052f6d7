// Package install owns how a hub and a managed cluster's agent come into a
// cluster and go again: what init, join and unjoin do behind their flags.
//
// The way is always the same. Values (Hub, Klusterlet) say what is wanted;
// facts are gathered from the cluster; pure checks check both and report every
// finding at once; objects are rendered, applied in stages and waited for. A
// value that is not set keeps what is live, so running again repairs and never
// resets. Every step can be repeated after a crash at any write.
//
// The package reads no flag, prints nothing and never handles a credential it
// was not given for the cluster it writes to.
package install
