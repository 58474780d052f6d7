package credential_test

import (
	"testing"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
)

// TestCheckIssued: the clock of the issuer may be a little ahead, and neither one that is far
// ahead nor one that is behind by the whole lifetime issues what can be used.
func TestCheckIssued(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		name   string
		begins time.Duration
		life   time.Duration
		usable bool
	}{
		{name: "now", life: time.Hour, usable: true},
		{name: "a little in the future", begins: 4 * time.Minute, life: time.Hour, usable: true},
		{name: "far in the future", begins: 6 * time.Minute, life: time.Hour},
		{name: "in the past", begins: -time.Minute, life: time.Hour, usable: true},
		{name: "in the past, and expired", begins: -time.Hour, life: time.Hour},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			v := credential.Validity{NotBefore: now.Add(tc.begins), NotAfter: now.Add(tc.begins + tc.life)}
			if err := v.CheckIssued(now); (err == nil) != tc.usable {
				t.Errorf("usable is %t: %v", !tc.usable, err)
			}
		})
	}
}
