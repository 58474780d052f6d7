package credential

import (
	"hash/fnv"
	"math"
	"time"
)

// RenewalPolicy is when in a credential's life it is renewed: at Latest at the latest,
// spread evenly over the Spread before it so that credentials issued together
// are not renewed together. Both are fractions of the lifetime as issued.
type RenewalPolicy struct {
	Latest float64
	Spread float64
	// MinLeft is the least time left at the renewal, where that is more than what
	// Latest leaves. Of a short life it takes at most half, or a new credential
	// would be due at once.
	MinLeft time.Duration
	// MaxLife, if set, is the requested lifetime. A credential with a longer lifetime
	// was requested with another setting, and is due at once; if it was requested with
	// this one, its issuer ignores the request, and it is renewed as if it had this
	// lifetime.
	MaxLife time.Duration
}

// Backdating is how much earlier than at its issue a credential may begin to be valid: the
// signer of Kubernetes dates certificates back by this.
const Backdating = 5 * time.Minute

// tooLong reports whether a credential has a longer lifetime than requested.
func (p RenewalPolicy) tooLong(v Validity) bool {
	return p.MaxLife > 0 && v.Lifetime() > p.MaxLife+Backdating
}

// Certificates are renewed with 20 to 25 % of their life left.
func Certificates() RenewalPolicy { return RenewalPolicy{Latest: 0.80, Spread: 0.05} }

// Tokens are renewed when 80 % of their life is used, or a little earlier,
// never later.
func Tokens() RenewalPolicy { return RenewalPolicy{Latest: 0.80, Spread: 0.10} }

// PullSecrets are renewed with at least 40 % of their life left and at least 11
// minutes, which outlasts an image pull that began just before.
func PullSecrets() RenewalPolicy {
	return RenewalPolicy{Latest: 0.60, Spread: 0.20, MinLeft: 11 * time.Minute}
}

// latest is the fraction of a lifetime after which a credential is renewed at the
// latest.
func (p RenewalPolicy) latest(life time.Duration) float64 {
	if p.MinLeft <= 0 {
		return p.Latest
	}
	return min(p.Latest, max(0.5, 1-float64(p.MinLeft)/float64(life)))
}

// RenewAt returns the time at which a credential is due for renewal, between NotBefore and
// NotAfter. The seed picks the point within the policy's spread: the same seed gives the same
// time for the same credential, so a restart changes nothing. A credential without a lifetime
// is due at once. For a credential that does not expire the result has no meaning, and the
// rules ignore it.
func RenewAt(v Validity, p RenewalPolicy, seed string) time.Time {
	if p.tooLong(v) {
		return v.NotBefore
	}
	life := v.Lifetime()
	if life <= 0 {
		return v.NotBefore
	}
	used := p.latest(life) - p.Spread*fraction(seed+v.NotAfter.UTC().Format(time.RFC3339Nano))
	return v.NotBefore.Add(time.Duration(used * float64(life)))
}

// RenewObtained is RenewAt for a credential whose time of issue is known. An issuer may
// backdate a credential, Kubernetes' signer by five minutes, so that the renewal point
// of a short-lived one precedes its issue and every renewal would be due at once. The
// result is never before half of the time in which the credential could be used.
func RenewObtained(v Validity, p RenewalPolicy, seed string, obtained time.Time) time.Time {
	if p.tooLong(v) {
		v.NotAfter = v.NotBefore.Add(p.MaxLife)
	}
	at := RenewAt(v, p, seed)
	if v.Unlimited {
		return at
	}
	if half := obtained.Add(v.NotAfter.Sub(obtained) / 2); half.After(at) && obtained.Before(v.NotAfter) {
		return half
	}
	return at
}

// Backoff is how long to wait between failed attempts.
type Backoff struct {
	// First is the wait after the first failure; it doubles from there.
	First time.Duration
	// Most is never exceeded.
	Most time.Duration
}

// Delay is the wait after the given number of failures in a row, from one up:
// exponential, then spread by the seed over its upper half.
func (b Backoff) Delay(failures int, seed string) time.Duration {
	if failures < 1 {
		return 0
	}
	full := float64(b.First) * math.Exp2(float64(failures-1))
	full = min(full, float64(b.Most))
	return time.Duration(full * (1 - fraction(seed)/2))
}

// fraction turns a seed into a number in [0, 1).
func fraction(seed string) float64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(seed)) // A hash never fails to write.
	// FNV leaves similar seeds close together in its high bits; multiplying by
	// an odd constant spreads them.
	mixed := (h.Sum64() ^ h.Sum64()>>32) * 0x9E3779B97F4A7C15
	return float64(mixed>>11) / (1 << 53)
}
