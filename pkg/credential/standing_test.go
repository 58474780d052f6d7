package credential_test

import (
	"testing"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
)

func TestStanding(t *testing.T) {
	t.Parallel()
	start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		name   string
		life   time.Duration
		used   time.Duration
		want   credential.Standing
		ofLife time.Duration
	}{
		{name: "new", life: 100 * time.Hour, want: credential.Current, ofLife: 80*time.Hour + time.Minute},
		{name: "while it is renewed", life: 100 * time.Hour, used: 80*time.Hour + 59*time.Second, want: credential.Current, ofLife: 80*time.Hour + time.Minute},
		{name: "not renewed", life: 100 * time.Hour, used: 80*time.Hour + time.Minute, want: credential.Overdue, ofLife: 90 * time.Hour},
		{name: "with a tenth left", life: 100 * time.Hour, used: 90 * time.Hour, want: credential.Ending, ofLife: 100 * time.Hour},
		{name: "at its end", life: 100 * time.Hour, used: 100 * time.Hour, want: credential.Ended},
		// Two minutes that Kubernetes dates back by five: renewed after the first of them.
		{name: "short, while it is renewed", life: 7 * time.Minute, used: 6*time.Minute + 20*time.Second, want: credential.Current, ofLife: 6*time.Minute + 21*time.Second},
		{name: "short, not renewed", life: 7 * time.Minute, used: 6*time.Minute + 22*time.Second, want: credential.Ending, ofLife: 7 * time.Minute},
	} {
		v := credential.Validity{NotBefore: start, NotAfter: start.Add(tc.life)}
		for _, policy := range []credential.RenewalPolicy{credential.Certificates(), credential.Tokens()} {
			got, until := policy.Standing(v, start.Add(tc.used))
			want := time.Time{}
			if tc.ofLife > 0 {
				want = start.Add(tc.ofLife)
			}
			if got != tc.want || !until.Equal(want) {
				t.Errorf("%s: %s until %v, not %s until %v", tc.name, got, until, tc.want, want)
			}
		}
	}
	if got, until := credential.Certificates().Standing(credential.Unlimited(), start); got != credential.Current || !until.IsZero() {
		t.Errorf("without an end: %s until %v", got, until)
	}
}

// TestRenewedBeforeOverdue: what renews in time is never overdue, wherever in its spread.
func TestRenewedBeforeOverdue(t *testing.T) {
	t.Parallel()
	start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, life := range []time.Duration{7 * time.Minute, 10 * time.Minute, time.Hour, 24 * time.Hour, 90 * 24 * time.Hour} {
		v := credential.Validity{NotBefore: start, NotAfter: start.Add(life)}
		for _, policy := range []credential.RenewalPolicy{credential.Certificates(), credential.Tokens()} {
			for _, seed := range []string{"a", "b", "c", "d", "e", "f"} {
				for _, obtained := range []time.Time{start, start.Add(credential.Backdating)} {
					if at := credential.RenewObtained(v, policy, seed, obtained); !at.Before(policy.OverdueAt(v)) {
						t.Errorf("a life of %s obtained after %s is renewed at %v, overdue at %v", life, obtained.Sub(start), at, policy.OverdueAt(v))
					}
				}
			}
		}
	}
}
