//go:build !linux

package cmd

import (
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
)

// runners are the commands that run clusters and controllers, which need Linux: here
// they say so.
func runners(Env) []section {
	return []section{
		{cli.GroupRun, cli.LinuxOnly("local", "Run a hub and managed clusters on this machine (Linux only)")},
		{cli.GroupRun, cli.LinuxOnly("controller", "Run a controller (Linux only)")},
	}
}
