package checks_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/checks"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/finding"
)

// TestReport: one failure is one block, however many checks it keeps from being made, and the
// last line counts all.
func TestReport(t *testing.T) {
	t.Parallel()
	always := func(o finding.Outcome) func(context.Context) finding.Outcome {
		return func(context.Context) finding.Outcome { return o }
	}
	const words = "the release is older than what this program was made for, and has no fix for what it does wrong"
	report := checks.Run(t.Context(), "the hub", []finding.Step{
		{Name: "it answers", Run: always(finding.Good("1.36"))},
		{Name: "it isn't old", Run: always(finding.Caution("update it", "%s", words))},
		{Name: "it is installed", Needed: true, Run: always(finding.Bad("run init", "there is nothing"))},
		{Name: "it runs", Run: always(finding.Good(""))},
		{Name: "it is well", Run: always(finding.Good(""))},
		{Name: "it is safe", Run: always(finding.Good(""))},
	})
	for name, tc := range map[string]struct {
		terminal bool
		want     string
	}{
		"a file": {want: ` 1. ok       it answers
             1.36
 2. warning  it isn't old
             ` + words + `
             try: update it
 3. failed   it is installed
             there is nothing
             try: run init
 4. skipped  it runs, and 2 more checks
             needs: it is installed
6 checks: 1 ok, 1 warning, 1 failed, 3 skipped
`},
		"a terminal": {terminal: true, want: " 1. \x1b[32mok      \x1b[0m it answers\n" + `             1.36
` + " 2. \x1b[33mwarning \x1b[0m it isn't old\n" + `             the release is older than what this program was made for, and has
             no fix for what it does wrong
             try: update it
` + " 3. \x1b[31mfailed  \x1b[0m it is installed\n" + `             there is nothing
             try: run init
` + " 4. \x1b[2mskipped \x1b[0m it runs, and 2 more checks\n" + `             needs: it is installed
6 checks: 1 ok, 1 warning, 1 failed, 3 skipped
`},
	} {
		var got strings.Builder
		if err := report.Print(&got, tc.terminal); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.want, got.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	var ids []string
	for _, c := range report.Checks {
		ids = append(ids, c.ID)
	}
	if diff := cmp.Diff([]string{"it-answers", "it-isnt-old", "it-is-installed", "it-runs", "it-is-well", "it-is-safe"}, ids); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
