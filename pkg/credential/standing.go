package credential

import "time"

// Standing is how far a credential is in its life, as its dates show.
type Standing string

// The standings of a credential.
const (
	// Current: its renewal lies ahead, or may just happen.
	Current Standing = "Current"
	// Overdue: it should have been renewed, and is valid for a while.
	Overdue Standing = "Overdue"
	// Ending: it is overdue, and less than a tenth of its life is left.
	Ending Standing = "Ending"
	// Ended: it is not valid any more.
	Ended Standing = "Ended"
)

const (
	// mostAllowance is how long a renewal may take before it is overdue: a hub that starts
	// again answers within this time.
	mostAllowance = time.Minute
	// allowances are in a lifetime, where that makes less than mostAllowance.
	allowances = 20
	// lastPart of a lifetime is its end.
	lastPart = 10
)

// OverdueAt is when the holder of a credential should have renewed it. The dates do not show
// when it was obtained: it may be dated back, see RenewObtained.
func (p RenewalPolicy) OverdueAt(v Validity) time.Time {
	p.Spread = 0
	at := RenewObtained(v, p, "", v.NotBefore.Add(Backdating))
	return at.Add(min(mostAllowance, v.Lifetime()/allowances))
}

// Standing returns how far a credential is at now, and when that changes next; zero if it
// does not. A credential without an end is current.
func (p RenewalPolicy) Standing(v Validity, now time.Time) (standing Standing, until time.Time) {
	overdue := p.OverdueAt(v)
	ending := v.NotAfter.Add(-v.Lifetime() / lastPart)
	if ending.Before(overdue) {
		ending = overdue
	}
	switch {
	case v.Unlimited:
		return Current, time.Time{}
	case v.Expired(now):
		return Ended, time.Time{}
	case now.Before(overdue):
		return Current, overdue
	case now.Before(ending):
		return Overdue, ending
	}
	return Ending, v.NotAfter
}
