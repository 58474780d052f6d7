package mint

import (
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/denial"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/subject"
)

// MinSubjectLife is the minimum remaining lifetime of a subject token for an exchange
// whose result the client keeps.
const MinSubjectLife = time.Minute

// ExpiresIn is how long a client of the security token service may use issued
// ("expires_in", RFC 8693 §2.2.1): not longer than its own token would have
// lasted, and for a legacy token not longer than the age at which others are
// refused. A subject token that is about to end is refused.
func ExpiresIn(issued Token, id subject.Identity, now time.Time) (time.Duration, error) {
	left := issued.Expires.Sub(now)
	end := id.Token.NotAfter
	if end.IsZero() { // A legacy token, which has no end to go by.
		return min(left, subject.DefaultMaxAge), nil
	}
	own := end.Sub(now)
	if own < MinSubjectLife {
		return 0, denial.New(denial.Expired, "the subject token ends in %s, which is less than %s; present a fresh one",
			max(own, 0).Round(time.Second), MinSubjectLife)
	}
	return min(left, own), nil
}
