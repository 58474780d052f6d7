package token_test

import (
	"errors"
	"testing"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/token"
)

// TestTheHubsClockMayBeAhead: a token that begins a little in the future is
// taken, because two clocks are never the same.
func TestTheHubsClockMayBeAhead(t *testing.T) {
	t.Parallel()
	for ahead, taken := range map[time.Duration]bool{
		time.Second: true, 5 * time.Minute: true, 5*time.Minute + time.Second: false,
	} {
		begin := epoch().Add(ahead)
		hub := &recorder{token: string(encode(t, claimsOf(func(c, _ map[string]any) {
			c["iat"], c["nbf"], c["exp"] = begin.Unix(), begin.Unix(), begin.Add(time.Hour).Unix()
		})))}
		step, err := newAddOn(kubeClient("token", ownUser), said("True", "ServiceAccount c1/c1-a-agent (UID: u1) is ready")...).
			Obtain(t.Context(), hub, nil)
		var failure *driver.RequestError
		if unfit := errors.As(err, &failure) && failure.Reason == token.ReasonUnfit; unfit == taken || taken != (step.Issued != nil) {
			t.Errorf("%v ahead: got %+v, %v", ahead, step, err)
		}
	}
}
