package subject

import (
	"fmt"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz/verdict"
)

// checkEnd allows no skew: a token is renewed long before it ends.
func (a *attempt) checkEnd() *verdict.Error {
	end := a.claims.expiry
	switch {
	case end.IsZero() && a.claims.nested:
		return verdict.Refuse(verdict.Expired, "it has no end (exp), which every token of this form must have")
	case !end.IsZero() && !a.now.Before(end):
		return verdict.Refuse(verdict.Expired, "it ended at %s, %v ago", stamp(end), a.since(end))
	}
	a.identity.Token.NotAfter = end
	return nil
}

// checkBegin judges "nbf" and "iat", which Kubernetes sets to the same time.
func (a *attempt) checkBegin() *verdict.Error {
	limit := a.now.Add(a.rules.Skew)
	if begin := a.claims.notBefore; begin.After(limit) {
		return verdict.Refuse(verdict.NotYetValid, "it begins (nbf) at %s, in %v; is a clock wrong?", stamp(begin), -a.since(begin))
	}
	if issued := a.claims.issuedAt; issued.After(limit) {
		return verdict.Refuse(verdict.NotYetValid, "it was issued (iat) at %s, in %v from now; is a clock wrong?", stamp(issued), -a.since(issued))
	}
	a.identity.Token.IssuedAt = a.claims.issuedAt
	return nil
}

// checkAge holds against tokens that the API server extended to a year.
func (a *attempt) checkAge() *verdict.Error {
	issued, limit := a.claims.issuedAt, a.rules.MaxAge
	if limit <= 0 {
		return nil
	}
	if issued.IsZero() {
		if a.claims.nested {
			return verdict.Refuse(verdict.TooOld, "it does not say when it was issued (iat), and %v is the oldest taken", limit)
		}
		return nil
	}
	end := issued.Add(limit)
	if !a.now.Before(end) {
		return verdict.Refuse(verdict.TooOld, "it is %v old, and %v is the oldest taken", a.since(issued), limit)
	}
	a.endsBy(end)
	return nil
}

// checkWarnAfter takes "warnafter" for the end that was asked for: the API
// server gives tokens of its own kubelets a year, for clients that do not
// renew, and puts there when they should have.
func (a *attempt) checkWarnAfter() *verdict.Error {
	end := a.claims.warnAfter
	if end.IsZero() {
		return nil
	}
	if !a.now.Before(end) {
		return verdict.Refuse(verdict.Expired, "it should have been renewed by %s (warnafter), %v ago", stamp(end), a.since(end))
	}
	a.endsBy(end)
	return nil
}

func (a *attempt) endsBy(end time.Time) {
	if t := &a.identity.Token; t.NotAfter.IsZero() || end.Before(t.NotAfter) {
		t.NotAfter = end
	}
}

// since is how long ago t was, for people.
func (a *attempt) since(t time.Time) time.Duration { return a.now.Sub(t).Round(time.Second) }

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func (a *attempt) foundEnd() string {
	if a.claims.expiry.IsZero() {
		return "it never ends"
	}
	return fmt.Sprintf("ends at %s, in %v", stamp(a.claims.expiry), -a.since(a.claims.expiry))
}

func (a *attempt) foundBegin() string {
	if a.claims.issuedAt.IsZero() {
		return "it does not say when it was issued"
	}
	return "issued at " + stamp(a.claims.issuedAt)
}

func (a *attempt) foundAge() string {
	switch {
	case a.rules.MaxAge <= 0:
		return "not limited"
	case a.claims.issuedAt.IsZero():
		return "not known, as of every Secret's token"
	}
	return fmt.Sprintf("%v, and %v is the oldest taken", a.since(a.claims.issuedAt), a.rules.MaxAge)
}

func (a *attempt) foundWarnAfter() string {
	if a.claims.warnAfter.IsZero() {
		return "none beside its end"
	}
	return fmt.Sprintf("to be renewed by %s, in %v", stamp(a.claims.warnAfter), -a.since(a.claims.warnAfter))
}
