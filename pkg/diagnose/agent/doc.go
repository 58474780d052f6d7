// Package agent owns the checks of an agent on its managed cluster: its operator and
// components, its credential, its connection to the hub, and what the work agent may do.
//
// It contacts the hub without a credential, changes nothing and prints nothing.
package agent
