package credential_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
)

func TestChains(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	good := credential.Facts{
		Validity: credential.Validity{NotBefore: start, NotAfter: start.Add(100 * time.Hour)},
		RenewAt:  start.Add(80 * time.Hour),
	}
	with := func(problem error) credential.Facts {
		f := good
		f.Problem = problem
		return f
	}
	for _, tc := range []struct {
		name     string
		facts    credential.Facts
		at       time.Duration
		unusable credential.Reason
		due      credential.Reason
	}{
		{name: "a fresh credential needs nothing", facts: good, at: time.Hour},
		{name: "just before the renewal point nothing is needed", facts: good, at: 80*time.Hour - 1},
		{name: "at the renewal point it is due but usable", facts: good, at: 80 * time.Hour, due: credential.NearExpiry},
		{name: "just before the end it is usable", facts: good, at: 100*time.Hour - 1, due: credential.NearExpiry},
		{name: "at the end it is expired", facts: good, at: 100 * time.Hour, unusable: credential.Expired, due: credential.Expired},
		{name: "a future start is no reason", facts: good, at: -time.Minute},
		{name: "missing", facts: with(credential.ErrMissing), unusable: credential.Missing, due: credential.Missing},
		{name: "malformed", facts: with(fmt.Errorf("no key: %w", credential.ErrMalformed)), unusable: credential.Malformed, due: credential.Malformed},
		{name: "any other problem is malformed", facts: with(errors.New("what")), unusable: credential.Malformed, due: credential.Malformed},
		{name: "wrong identity", facts: with(fmt.Errorf("c2: %w", credential.ErrWrongIdentity)), unusable: credential.WrongIdentity, due: credential.WrongIdentity},
		{name: "a problem comes before the clock", facts: with(credential.ErrWrongIdentity), at: 200 * time.Hour, unusable: credential.WrongIdentity, due: credential.WrongIdentity},
		{name: "a retired signer", facts: with(fmt.Errorf("key k1: %w", credential.ErrSignerRetired)), unusable: credential.SignerRetired, due: credential.SignerRetired},
		{name: "other servers are due but usable", facts: with(fmt.Errorf("not r2: %w", credential.ErrServersChanged)), at: time.Hour, due: credential.ServersChanged},
		{name: "other servers come before the renewal point", facts: with(credential.ErrServersChanged), at: 90 * time.Hour, due: credential.ServersChanged},
		{name: "other servers do not hide the end", facts: with(credential.ErrServersChanged), at: 100 * time.Hour, unusable: credential.Expired, due: credential.Expired},
		{name: "a request is due but usable", facts: with(credential.ErrRefreshRequested), at: time.Hour, due: credential.RefreshRequested},
		{name: "a request does not hide the end", facts: with(credential.ErrRefreshRequested), at: 100 * time.Hour, unusable: credential.Expired, due: credential.Expired},
		{name: "without an end it never expires", facts: credential.Facts{Validity: credential.Unlimited()}, at: 1_000_000 * time.Hour},
		{name: "without an end it can be missing", facts: credential.Facts{Validity: credential.Unlimited(), Problem: credential.ErrMissing}, unusable: credential.Missing, due: credential.Missing},
		{name: "no facts at all are expired", facts: credential.Facts{}, unusable: credential.Expired, due: credential.Expired},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			now := start.Add(tc.at)
			need, ok := credential.Unusable().Evaluate(tc.facts, now)
			if need.Reason != tc.unusable || ok != (tc.unusable != "") || ok != (need.Message != "") {
				t.Errorf("unusable: got %+v, %v; want %q", need, ok, tc.unusable)
			}
			need, ok = credential.Due().Evaluate(tc.facts, now)
			if need.Reason != tc.due || ok != (tc.due != "") || ok != (need.Message != "") {
				t.Errorf("due: got %+v, %v; want %q", need, ok, tc.due)
			}
		})
	}
}

// TestUrgency: whatever makes a credential useless comes before what limits it,
// and that before what has time.
func TestUrgency(t *testing.T) {
	t.Parallel()
	for urgency, reasons := range map[credential.Urgency][]credential.Reason{
		credential.Broken:   {credential.Missing, credential.WrongIdentity, credential.SignerRetired, credential.Malformed, credential.Expired},
		credential.Degraded: {credential.ServersChanged},
		credential.Routine:  {credential.NearExpiry, credential.RefreshRequested},
	} {
		for _, reason := range reasons {
			if got := reason.Urgency(); got != urgency {
				t.Errorf("%s has urgency %d, want %d", reason, got, urgency)
			}
		}
	}
	if credential.Broken <= credential.Degraded || credential.Degraded <= credential.Routine {
		t.Error("the urgencies are not in order")
	}
}
