package credential

import "time"

// Validity is the time in which a credential is good, as issued.
type Validity struct {
	NotBefore time.Time
	NotAfter  time.Time
}

// Lifetime is how long the credential is good in all.
func (v Validity) Lifetime() time.Duration { return v.NotAfter.Sub(v.NotBefore) }

// Expired reports whether the credential is no longer good at now.
func (v Validity) Expired(now time.Time) bool { return !now.Before(v.NotAfter) }
