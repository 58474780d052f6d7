package addon_test

import (
	"testing"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/agent/addon"
)

// TestUndone: an agent writes again what another writer undoes, at once in the beginning and
// then ever less often, but never gives in.
func TestUndone(t *testing.T) {
	t.Parallel()
	const seldom = 10 * time.Minute
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	u := addon.NewUndone()
	var waits []time.Duration
	for range 20 {
		wait := u.Write(at)
		waits = append(waits, wait)
		at = at.Add(wait)
	}
	if waits[0] != 0 || waits[1] != 0 {
		t.Errorf("it waited before the third write: %v", waits)
	}
	for i, wait := range waits[2:] {
		if wait <= 0 || wait > seldom || wait < waits[i+1] {
			t.Errorf("wait %d is %v: %v", i+3, wait, waits)
		}
	}
	if last := waits[len(waits)-1]; last < seldom/2 {
		t.Errorf("it waits %v in the end", last)
	}
}
