package fleet

import (
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
)

// SayRemains names what a removal leaves, and why.
func SayRemains(env cli.Env, runner *install.Runner, remains []install.Remain) {
	if len(remains) == 0 {
		return
	}
	env.Say("These stay; --purge deletes them:")
	for _, remain := range remains {
		env.Say("  %s: %s", runner.Describe(remain.Object), remain.Why)
	}
}
