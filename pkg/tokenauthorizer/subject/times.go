package subject

import (
	"fmt"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/denial"
)

// checkEnd allows no skew: a token is renewed long before it ends.
func (a *attempt) checkEnd() *denial.Error {
	end := a.claims.expiry
	switch {
	case end.IsZero() && a.claims.nested:
		return denial.New(denial.Expired, "it has no end (exp), which every token of this form must have")
	case !end.IsZero() && !a.now.Before(end):
		return denial.New(denial.Expired, "it ended at %s, %v ago", credential.Timestamp(end), a.since(end))
	}
	a.identity.Token.NotAfter = end
	return nil
}

// checkBegin checks "nbf" and "iat", which Kubernetes sets to the same time.
func (a *attempt) checkBegin() *denial.Error {
	limit := a.now.Add(a.rules.Skew)
	if begin := a.claims.notBefore; begin.After(limit) {
		return denial.New(denial.NotYetValid, "it begins (nbf) at %s, in %v; is a clock wrong?", credential.Timestamp(begin), -a.since(begin))
	}
	if issued := a.claims.issuedAt; issued.After(limit) {
		return denial.New(denial.NotYetValid, "it was issued (iat) at %s, in %v from now; is a clock wrong?", credential.Timestamp(issued), -a.since(issued))
	}
	a.identity.Token.IssuedAt = a.claims.issuedAt
	return nil
}

// checkAge holds against tokens that the API server extended to a year.
func (a *attempt) checkAge() *denial.Error {
	issued, limit := a.claims.issuedAt, a.rules.MaxAge
	if limit <= 0 {
		return nil
	}
	if issued.IsZero() {
		if a.claims.nested {
			return denial.New(denial.TooOld, "it does not say when it was issued (iat), and %v is the oldest taken", limit)
		}
		return nil
	}
	end := issued.Add(limit)
	if !a.now.Before(end) {
		return denial.New(denial.TooOld, "it is %v old, and %v is the oldest taken", a.since(issued), limit)
	}
	a.endsBy(end)
	return nil
}

// checkWarnAfter uses "warnafter" as the requested expiry: the API server gives tokens
// of its own kubelets a year, for clients that do not renew, and records there when
// they should have renewed.
func (a *attempt) checkWarnAfter() *denial.Error {
	end := a.claims.warnAfter
	if end.IsZero() {
		return nil
	}
	if !a.now.Before(end) {
		return denial.New(denial.Expired, "it should have been renewed by %s (warnafter), %v ago", credential.Timestamp(end), a.since(end))
	}
	a.endsBy(end)
	return nil
}

func (a *attempt) endsBy(end time.Time) {
	if t := &a.identity.Token; t.NotAfter.IsZero() || end.Before(t.NotAfter) {
		t.NotAfter = end
	}
}

// since is how long ago t was, in whole seconds.
func (a *attempt) since(t time.Time) time.Duration { return a.now.Sub(t).Round(time.Second) }

func (a *attempt) foundEnd() string {
	if a.claims.expiry.IsZero() {
		return "it never ends"
	}
	return fmt.Sprintf("ends at %s, in %v", credential.Timestamp(a.claims.expiry), -a.since(a.claims.expiry))
}

func (a *attempt) foundBegin() string {
	if a.claims.issuedAt.IsZero() {
		return "it does not say when it was issued"
	}
	return "issued at " + credential.Timestamp(a.claims.issuedAt)
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
		return "none in addition to its end"
	}
	return fmt.Sprintf("to be renewed by %s, in %v", credential.Timestamp(a.claims.warnAfter), -a.since(a.claims.warnAfter))
}
