//go:build linux

// Package local is the "local" command: clusters on this machine without
// Docker. It turns flags into calls of pkg/local and prints. Two hidden
// subcommands are what pkg/local starts our own binary as: the supervisor of a
// cluster and the first process of a container.
package local
