package legacytokens

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/legacytoken"
)

// olderThan is how long a token is quarantined before it is deleted, by default:
// long enough for a weekly job to fail.
const olderThan = 7

func newDelete(env cli.Env) *cobra.Command {
	v := &forcedVerb{verb: verb{selection: selection{env: env}, done: "deleted"}}
	age, backups := days(olderThan), ""
	v.tasks = func(_ context.Context, inventory *legacytoken.Inventory, t *legacytoken.Token) ([]legacytoken.Task, error) {
		if v.all && t.QuarantinedSince == "" {
			return nil, nil
		}
		return one(t, inventory.PlanDelete(t, int(age), v.force), func(ctx context.Context) error {
			if env.Kube.DryRun() != cli.DryRunNone {
				return legacytoken.Delete(ctx, v.cluster, t, "")
			}
			return legacytoken.Delete(ctx, v.cluster, t, backups)
		})
	}
	cmd := &cobra.Command{
		Use:   "delete {NAMESPACE/NAME... | --all}",
		Short: "Delete tokens that were quarantined long enough",
		Long: `Delete legacy token Secrets that were quarantined for --older-than. The day of
the quarantine does not count. Prints what would be done unless --dry-run=none
is given.

With --backup-dir, each Secret is first written to DIR/NAMESPACE/NAME.yaml,
which only you can read. The file holds the token: kubectl create -f brings the
Secret back, still quarantined.

Refused are tokens that a client presented after the day of the quarantine, and
those that a Pod, workload or pull secret uses. --force deletes them if they are
named, but none that is not quarantined long enough.

The exit code is 3 if a token is refused.`,
		Example: fmt.Sprintf(`  # Delete what was quarantined for a week, and keep backups
  %[1]s legacy-tokens delete -A --all --backup-dir tokens --dry-run=none`, env.Name),
	}
	v.addTo(cmd, "also delete named tokens that may be in use")
	cmd.Flags().Var(&age, "older-than", "how many days a token was quarantined")
	cmd.Flags().StringVar(&backups, "backup-dir", "", "directory for backups; empty means none")
	return cmd
}
