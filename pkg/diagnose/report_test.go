package diagnose_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/diagnose"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/finding"
)

func always(o finding.Outcome) func(context.Context) finding.Outcome {
	return func(context.Context) finding.Outcome { return o }
}

// TestRun: a failed check skips the later ones only if they need it, and a warning skips none.
func TestRun(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		steps []finding.Step
		want  []finding.Status
		ok    bool
	}{
		"all is well": {
			steps: []finding.Step{{Name: "a", Needed: true, Run: always(finding.Good(""))}, {Name: "b", Run: always(finding.Caution("", ""))}},
			want:  []finding.Status{finding.OK, finding.Warning}, ok: true,
		},
		"a needed check fails": {
			steps: []finding.Step{{Name: "a", Needed: true, Run: always(finding.Bad("", ""))}, {Name: "b", Run: always(finding.Good(""))}},
			want:  []finding.Status{finding.Failed, finding.Skipped},
		},
		"another check fails": {
			steps: []finding.Step{{Name: "a", Run: always(finding.Bad("", ""))}, {Name: "b", Run: always(finding.Good(""))}},
			want:  []finding.Status{finding.Failed, finding.OK},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			report := diagnose.Run(t.Context(), "the hub", tc.steps)
			var got []finding.Status
			for _, check := range report.Checks {
				got = append(got, check.Status)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || report.OK != tc.ok || report.Ended != nil {
				t.Errorf("ok %v, ended with %v, statuses (-want +got):\n%s", report.OK, report.Ended, diff)
			}
		})
	}
}

// TestRunEnds: checks that the context leaves no time for are unknown, and the report is not OK.
func TestRunEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	report := diagnose.Run(ctx, "the hub", []finding.Step{
		{Name: "the hub's API isn't slow", Run: func(context.Context) finding.Outcome { cancel(); return finding.Good("") }},
		{Name: "it runs", Run: always(finding.Good(""))},
	})
	if report.OK || report.Ended == nil || report.Checks[0].Status != finding.OK || report.Checks[1].Status != finding.Unknown {
		t.Errorf("%+v", report)
	}
	if got := report.Checks[0].ID; got != "the-hubs-api-isnt-slow" {
		t.Errorf("the id is %q", got)
	}
}
