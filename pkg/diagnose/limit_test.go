package diagnose_test

import (
	"testing"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/diagnose"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/finding"
)

func TestLimit(t *testing.T) {
	t.Parallel()
	limit := diagnose.Limit(24 * time.Hour)
	for life, want := range map[time.Duration]bool{time.Hour: false, 24*time.Hour + time.Minute: false, 48 * time.Hour: true} {
		if limit.ExceededBy(life) != want {
			t.Errorf("%s: want %v", life, want)
		}
		if diagnose.Limit(0).ExceededBy(life) {
			t.Errorf("%s exceeds no limit", life)
		}
	}
	if got := limit.Outcome([]string{"a", "b"}, "rotate"); got.Status != finding.Warning || got.Message != "longer than 1d: a; b" || got.Try != "rotate" {
		t.Errorf("%+v", got)
	}
	if got := limit.Outcome(nil, "rotate"); got.Status != finding.OK {
		t.Errorf("%+v", got)
	}
}
