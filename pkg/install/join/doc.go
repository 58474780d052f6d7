// Package join owns how a cluster registers with a hub: it verifies the hub before it sends
// the token there, installs the agent, and waits until the hub shows the cluster as joined.
// With a connection of the hub's administrator it also creates the token and accepts the
// cluster. It reads no flag and prints nothing: an Observer learns what a user should know
// meanwhile.
package join
