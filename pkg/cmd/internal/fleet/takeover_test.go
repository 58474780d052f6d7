package fleet_test

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/buildinfo"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/takeover"
)

// TestPrintTakeOver: the steps are numbered with the installation among them, long
// lines are folded, and what is not accepted is an error.
func TestPrintTakeOver(t *testing.T) {
	t.Parallel()
	plan := takeover.Plan{
		From:   "OCM v1.3.1",
		Before: []takeover.Step{{Title: "Stop OCM's operator", Why: "It would restore what the next steps delete.", Objects: []string{"Deployment a/b"}}},
		After:  []takeover.Step{{Title: "Delete the webhook configurations", Why: "The admission policies check the same by now, and this is a line that is too long."}},
		Changes: []takeover.Change{
			{Name: "placements", Message: "there is no placement controller: the decisions of 3 Placements stay as they are"},
			{Name: "workDriver", Message: "short", Accepted: true},
		},
	}
	var out bytes.Buffer
	env := cli.Env{IOStreams: genericiooptions.IOStreams{Out: &out}}
	err := fleet.PrintTakeOver(env, cli.NewOutput(cli.Text), plan)
	if code := cli.ExitCode(err); code != cli.CodeBlocked {
		t.Errorf("the exit code is %d: %v", code, err)
	}
	want := `Replace OCM v1.3.1:
 1. Stop OCM's operator
    It would restore what the next steps delete.
    - Deployment a/b
 2. Install this release, ` + buildinfo.Version + `, and wait until it works
 3. Delete the webhook configurations
    The admission policies check the same by now, and this is a line that is too
    long.
Change placements (not accepted):
    there is no placement controller: the decisions of 3 Placements stay as they
    are.
Change workDriver (accepted):
    short.
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	plan.Changes[0].Accepted = true
	if err := fleet.PrintTakeOver(env, cli.NewOutput(cli.Text), plan); err != nil {
		t.Errorf("everything is accepted: %v", err)
	}
}
