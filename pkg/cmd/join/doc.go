// Package join is the "join" command: it installs the agent that registers a
// cluster with a hub. The hub is verified before its token is sent anywhere,
// and everything is checked before anything is changed.
package join
