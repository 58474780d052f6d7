package cmd

import (
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/controller"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/local"
)

// runners are the commands that run clusters and controllers, which need Linux.
func runners(env Env) []section {
	return []section{
		{cli.GroupRun, local.New(env)},
		{cli.GroupRun, controller.New()},
	}
}
