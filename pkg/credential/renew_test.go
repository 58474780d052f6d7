package credential_test

import (
	"math"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
)

func TestRenewAtSpreads(t *testing.T) {
	t.Parallel()
	v := credential.Validity{NotBefore: time.Unix(1000, 0), NotAfter: time.Unix(1000+10_000, 0)}
	for name, tc := range map[string]struct {
		policy     credential.RenewalPolicy
		early, end float64
	}{
		"certificates": {policy: credential.Certificates(), early: 0.75, end: 0.80},
		"tokens":       {policy: credential.Tokens(), early: 0.70, end: 0.80},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lowest, highest := 1.0, 0.0
			for i := range 1000 {
				seed := "cluster" + strconv.Itoa(i)
				at := credential.RenewAt(v, tc.policy, seed)
				if again := credential.RenewAt(v, tc.policy, seed); !again.Equal(at) {
					t.Fatalf("seed %s gave %v, then %v", seed, at, again)
				}
				used := float64(at.Sub(v.NotBefore)) / float64(v.Lifetime())
				lowest, highest = min(lowest, used), max(highest, used)
			}
			width := tc.end - tc.early
			if lowest < tc.early-1e-9 || highest > tc.end+1e-9 {
				t.Errorf("used %v to %v of the life, want within %v to %v", lowest, highest, tc.early, tc.end)
			}
			if highest-lowest < 0.9*width {
				t.Errorf("1000 seeds spread only from %v to %v", lowest, highest)
			}
		})
	}
}

// TestRenewWithTimeLeft: a policy with a minimum keeps that much time, of short
// lives half, and spreads before it.
func TestRenewWithTimeLeft(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ life, least, most time.Duration }{
		{life: 12 * time.Hour, least: 288 * time.Minute, most: 432 * time.Minute}, // 40 % is more than 11 minutes.
		{life: time.Hour, least: 24 * time.Minute, most: 36 * time.Minute},
		{life: 25 * time.Minute, least: 11 * time.Minute, most: 16 * time.Minute}, // 40 % would be 10.
		{life: 22 * time.Minute, least: 11 * time.Minute, most: 11*time.Minute + 264*time.Second},
		{life: 10 * time.Minute, least: 5 * time.Minute, most: 7 * time.Minute}, // Not more than half.
	} {
		v := credential.Validity{NotBefore: time.Unix(1000, 0), NotAfter: time.Unix(1000, 0).Add(tc.life)}
		least, most := tc.life, time.Duration(0)
		for i := range 1000 {
			left := v.NotAfter.Sub(credential.RenewAt(v, credential.PullSecrets(), strconv.Itoa(i)))
			least, most = min(least, left), max(most, left)
		}
		if least < tc.least || most > tc.most || most-least < tc.life*18/100 {
			t.Errorf("of %v %v to %v are left, want %v to %v, spread", tc.life, least, most, tc.least, tc.most)
		}
	}
}

func FuzzRenewAt(f *testing.F) {
	f.Add(int64(0), int64(600), "c1")
	f.Add(int64(1_700_000_000), int64(31_536_000), "")
	f.Add(int64(5), int64(-5), "x")
	f.Fuzz(func(t *testing.T, start, life int64, seed string) {
		start, life = start%1e10, life%1e9
		v := credential.Validity{NotBefore: time.Unix(start, 0), NotAfter: time.Unix(start+life, 0)}
		for _, p := range []credential.RenewalPolicy{credential.Certificates(), credential.Tokens(), credential.PullSecrets()} {
			at := credential.RenewAt(v, p, seed)
			if life <= 0 {
				if !at.Equal(v.NotBefore) {
					t.Errorf("no lifetime: got %v", at)
				}
				continue
			}
			left := min(p.MinLeft.Seconds()/v.Lifetime().Seconds(), 0.5)
			used := min(p.Latest, 1-left)
			latest := v.NotBefore.Add(time.Duration(used * float64(v.Lifetime())))
			earliest := v.NotBefore.Add(time.Duration((used - p.Spread) * float64(v.Lifetime())))
			if at.After(latest.Add(time.Microsecond)) || at.Before(earliest.Add(-time.Microsecond)) || !at.Before(v.NotAfter) {
				t.Errorf("%v is not within %v and %v, before %v", at, earliest, latest, v.NotAfter)
			}
		}
	})
}

func TestRenewObtained(t *testing.T) {
	t.Parallel()
	issued := time.Unix(1_000_000, 0)
	for _, tc := range []struct {
		life, earliest, latest time.Duration
	}{
		{life: 20 * time.Second, earliest: 10 * time.Second, latest: 10 * time.Second},
		{life: 10 * time.Minute, earliest: 6 * time.Minute, latest: 7 * time.Minute},
		{life: 1000 * time.Hour, earliest: 749 * time.Hour, latest: 800 * time.Hour},
	} {
		v := credential.Validity{NotBefore: issued.Add(-5 * time.Minute), NotAfter: issued.Add(tc.life)}
		wait := credential.RenewObtained(v, credential.Certificates(), "seed", issued).Sub(issued)
		if wait < tc.earliest || wait > tc.latest {
			t.Errorf("a life of %v is renewed after %v", tc.life, wait)
		}
	}
	v := credential.Validity{NotBefore: issued, NotAfter: issued.Add(time.Hour)}
	if at := credential.RenewObtained(v, credential.Certificates(), "seed", issued.Add(2*time.Hour)); at.After(v.NotAfter) {
		t.Errorf("obtained after its end it is renewed at %v", at)
	}
}

// TestMaxLife: a credential that lives longer than what is asked for is due at once, unless
// the issuer gave it just now. Then it is renewed as if it had the lifetime that is asked for.
func TestMaxLife(t *testing.T) {
	t.Parallel()
	issued := time.Unix(1_000_000, 0)
	policy := credential.Certificates()
	policy.MaxLife = time.Hour
	for _, tc := range []struct {
		life             time.Duration
		earliest, latest time.Duration
		obtainedEarliest time.Duration
		obtainedLatest   time.Duration
	}{
		{life: 365 * 24 * time.Hour, obtainedEarliest: 40 * time.Minute, obtainedLatest: 43 * time.Minute},
		{life: time.Hour, earliest: 43*time.Minute + 45*time.Second, latest: 47 * time.Minute, obtainedEarliest: 43*time.Minute + 45*time.Second, obtainedLatest: 47 * time.Minute},
		{life: 30 * time.Minute, earliest: 21 * time.Minute, latest: 23 * time.Minute, obtainedEarliest: 21 * time.Minute, obtainedLatest: 23 * time.Minute},
	} {
		v := credential.Validity{NotBefore: issued.Add(-credential.Backdating), NotAfter: issued.Add(tc.life)}
		if wait := credential.RenewAt(v, policy, "seed").Sub(issued); max(wait, 0) < tc.earliest || wait > tc.latest {
			t.Errorf("a life of %v is renewed after %v", tc.life, wait)
		}
		if wait := credential.RenewObtained(v, policy, "seed", issued).Sub(issued); wait < tc.obtainedEarliest || wait > tc.obtainedLatest {
			t.Errorf("a life of %v that was given just now is renewed after %v", tc.life, wait)
		}
	}
}

func FuzzBackoff(f *testing.F) {
	f.Add(1, "a")
	f.Add(100_000, "b")
	f.Fuzz(func(t *testing.T, failures int, seed string) {
		b := credential.Backoff{First: time.Second, Most: time.Minute}
		got := b.Delay(failures, seed)
		switch {
		case failures < 1 && got != 0:
			t.Errorf("no failure: waits %v", got)
		case failures >= 1 && (got < b.First/2 || got > b.Most):
			t.Errorf("%d failures: waits %v", failures, got)
		}
	})
}

// TestShortTokenNeverLapses runs a day of a 600 s token that is renewed by
// RenewAt alone, with a renewal that takes its time.
func TestShortTokenNeverLapses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var wall clock.RealClock // The bubble's.
		issue := func() credential.Validity {
			now := wall.Now()
			return credential.Validity{NotBefore: now, NotAfter: now.Add(600 * time.Second)}
		}
		token := issue()
		end := wall.Now().Add(24 * time.Hour)
		for renewals := 0; wall.Now().Before(end); renewals++ {
			at := credential.RenewAt(token, credential.Tokens(), "addon"+strconv.Itoa(renewals))
			wall.Sleep(at.Sub(wall.Now()))
			if _, due := credential.Due().Evaluate(credential.Facts{Validity: token, RenewAt: at}, wall.Now()); !due {
				t.Fatal("woke up at the renewal point and the token was not due")
			}
			wall.Sleep(30 * time.Second) // The API server is slow.
			if token.Expired(wall.Now()) {
				t.Fatalf("lapsed after %d renewals", renewals)
			}
			token = issue()
		}
	})
}

// TestBackoffSpreads: many that fail together come again spread over the upper
// half of the wait, which doubles.
func TestBackoffSpreads(t *testing.T) {
	t.Parallel()
	b := credential.Backoff{First: 8 * time.Second, Most: time.Minute}
	for failures, full := range map[int]time.Duration{1: 8 * time.Second, 2: 16 * time.Second, 3: 32 * time.Second, 4: time.Minute, 50: time.Minute} {
		lowest, highest := full, time.Duration(0)
		for i := range 1000 {
			wait := b.Delay(failures, "cluster"+strconv.Itoa(i))
			lowest, highest = min(lowest, wait), max(highest, wait)
		}
		if lowest < full/2 || highest > full || highest-lowest < full*45/100 {
			t.Errorf("%d failures: waits from %v to %v of %v", failures, lowest, highest, full)
		}
	}
}

// TestUnlimited: what is asked of a credential without an end has an answer.
func TestUnlimited(t *testing.T) {
	t.Parallel()
	v := credential.Unlimited()
	at := credential.RenewObtained(v, credential.Certificates(), "seed", time.Unix(1000, 0))
	if _, due := credential.Due().Evaluate(credential.Facts{Validity: v, RenewAt: at}, time.Unix(1<<40, 0)); due {
		t.Error("it is due for renewal")
	}
	if v.Lifetime() != 0 || !math.IsInf(v.ExpirySeconds(), 1) || v.Until() == "" {
		t.Errorf("lifetime %v, expires at %v, %q", v.Lifetime(), v.ExpirySeconds(), v.Until())
	}
	if none := (credential.Validity{}); none.ExpirySeconds() != 0 || !none.Expired(time.Unix(0, 0)) {
		t.Error("no credential at all has an end as well")
	}
}
