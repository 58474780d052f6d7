package credential

import (
	"fmt"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
)

// Validity is the time in which a credential is valid, as issued.
type Validity struct {
	NotBefore time.Time
	NotAfter  time.Time
	// Unlimited says that the credential has no end: it is valid until it is
	// revoked. NotAfter is zero then.
	Unlimited bool
}

// Unlimited is the validity of a credential without an end.
func Unlimited() Validity { return Validity{Unlimited: true} }

// Lifetime is how long the credential is valid in all; zero if it has no end.
func (v Validity) Lifetime() time.Duration {
	if v.Unlimited {
		return 0
	}
	return v.NotAfter.Sub(v.NotBefore)
}

// Expired reports whether the credential is no longer valid at now.
func (v Validity) Expired(now time.Time) bool { return !v.Unlimited && !now.Before(v.NotAfter) }

// ExpirySeconds is the end in seconds since the epoch, for a metric: 0 if there
// is no credential, infinite if it has no end.
func (v Validity) ExpirySeconds() float64 {
	switch {
	case v.Unlimited:
		return math.Inf(1)
	case v.NotAfter.IsZero():
		return 0
	}
	return float64(v.NotAfter.Unix())
}

// Until returns until when the credential is valid, for messages.
func (v Validity) Until() string {
	if v.Unlimited {
		return "it is revoked"
	}
	return Timestamp(v.NotAfter)
}

// clockTolerance is how far in the future a new credential may begin: the clock of its
// issuer, which validates it, may be ahead.
const clockTolerance = 5 * time.Minute

// CheckIssued returns why a credential that was just issued cannot be used at now.
func (v Validity) CheckIssued(now time.Time) error {
	switch {
	case v.Expired(now):
		return fmt.Errorf("it expired at %s; check the clocks of hub and managed cluster", Timestamp(v.NotAfter))
	case v.NotBefore.After(now.Add(clockTolerance)):
		return fmt.Errorf("it is not valid before %s; check the clocks of hub and managed cluster", Timestamp(v.NotBefore))
	}
	return nil
}

// Timestamp is a time as messages and annotations have it: RFC 3339, in UTC.
func Timestamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// Lifetime is how long something is valid in all, as messages and tables have it: 365d.
func Lifetime(d time.Duration) string { return duration.ShortHumanDuration(d.Round(time.Minute)) }
