//go:build linux

// Package controller is the "controller" command: one subcommand, in one file,
// for each role that a Deployment runs. A role turns its flags into the Config
// of the subsystems it is made of and starts them in one manager; it is the
// only place where subsystems are combined, and holds no behaviour of its own.
package controller
