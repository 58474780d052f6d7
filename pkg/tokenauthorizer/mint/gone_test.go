package mint_test

import (
	"testing"
	"testing/synctest"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/denial"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/mint"
)

// TestTokensEndWithTheirTarget: a token of a deleted ServiceAccount is handed
// out no more, also when the token does not say whose it is.
func TestTokensEndWithTheirTarget(t *testing.T) {
	t.Parallel()
	for name, opaque := range map[string]bool{"a token with the account's UID": false, "a token that tells nothing": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				hub := &fakeHub{accounts: map[string]string{"team/worker": "u1"}, opaque: opaque, deleted: make(chan [2]string)}
				e := run(t, mint.Config{Hub: hub.config()}, settings("team"))
				synctest.Wait()
				for _, cached := range []bool{false, true} {
					if _, got, err := e.Mint(t.Context(), ask("c1")); err != nil || got != cached {
						t.Fatalf("cached %v, %v", got, err)
					}
				}
				hub.delete("team/worker")
				synctest.Wait()
				if _, _, err := e.Mint(t.Context(), ask("c1")); err == nil || denial.Of(err).Reason != denial.TargetMissing {
					t.Errorf("after its target was deleted: %v", err)
				}
			})
		})
	}
}
