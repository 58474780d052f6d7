package servingcert

import (
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
)

// Rules are how long certificates live and whom they are for.
type Rules struct {
	// CALife and ServingLife are the lifetimes of what is issued.
	CALife, ServingLife time.Duration
	// Settle is how long callers have to trust a new CA before it signs: an API
	// server takes a moment to see that its CRD has changed.
	Settle time.Duration
	// DNSNames are the names that the certificate is for.
	DNSNames []string
}

// DefaultRules are upstream's lifetimes for a Service.
// See docs/reference/wire-contract.md#webhook-certificates.
func DefaultRules(service, namespace string) Rules {
	return Rules{
		CALife: 365 * 24 * time.Hour, ServingLife: 30 * 24 * time.Hour, Settle: time.Minute,
		DNSNames: []string{service + "." + namespace + ".svc"},
	}
}

// State is what there is.
type State struct {
	Signer  KeyPair
	Serving KeyPair
	// Bundle is the published bundle.
	Bundle []byte
	// Trusted are the bundles by which callers check the serving certificate.
	Trusted [][]byte
	// TrustedSince is since when all of them were seen to have the CA; zero if
	// they do not.
	TrustedSince time.Time
}

// trusts reports whether all callers trust a CA.
func (s State) trusts(ca *x509.Certificate) bool {
	return !slices.ContainsFunc(s.Trusted, func(data []byte) bool { return !parseBundle(data).has(ca) })
}

// Plan is what has to be. A part that is nil stays as it is.
type Plan struct {
	// Signer and Serving are new certificates, and Why why there are new ones.
	Signer, Serving *KeyPair
	Why             []string
	// Bundle is the bundle to publish, always complete.
	Bundle []byte
	// Next is when to look again.
	Next time.Time
}

// Decide says what has to be done at now.
func (r Rules) Decide(now time.Time, s State) (Plan, error) {
	var plan Plan
	signer, err := r.signer(now, s.Signer, &plan)
	if err != nil {
		return Plan{}, err
	}
	trusted := r.trust(now, s, signer, &plan)
	return plan, r.serving(now, s, signer, trusted, &plan)
}

// signer returns the CA, a new one if it has to be.
func (r Rules) signer(now time.Time, stored KeyPair, plan *Plan) (pair, error) {
	ca, problem := stored.parse()
	facts := credential.Facts{Problem: problem}
	if problem == nil && !ca.cert.IsCA {
		facts.Problem = fmt.Errorf("%w: it is no CA", credential.ErrMalformed)
	}
	if facts.Problem == nil {
		facts.Validity = validity(ca.cert)
		facts.RenewAt = renewAt(ca.cert)
	}
	need, due := credential.Due().Judge(facts, now)
	if !due {
		plan.look(facts.RenewAt)
		return ca, nil
	}
	made, err := newCA(now, r.CALife)
	if err != nil {
		return pair{}, err
	}
	plan.Signer, plan.Why = &made, append(plan.Why, "the CA: "+need.Message)
	if ca, err = made.parse(); err != nil {
		return pair{}, err
	}
	plan.look(renewAt(ca.cert))
	return ca, nil
}

// trust sets the bundle and returns it. Where none is published it begins with
// what callers trust.
func (r Rules) trust(now time.Time, s State, signer pair, plan *Plan) bundle {
	known := parseBundle(s.Bundle)
	if len(known) == 0 {
		for _, trusted := range s.Trusted {
			for _, ca := range parseBundle(trusted) {
				known = known.with(ca)
			}
		}
	}
	known = known.with(signer.cert)
	var kept bundle
	for i, ca := range known {
		until := ca.NotAfter
		if i > 0 && !ca.Equal(signer.cert) {
			// The newer one took its place: by then it had signed its last.
			if gone := known[i-1].NotBefore.Add(backdate + r.ServingLife + r.Settle); gone.Before(until) {
				until = gone
			}
		}
		if !now.Before(until) && !ca.Equal(signer.cert) {
			continue
		}
		kept = append(kept, ca)
		if !ca.Equal(signer.cert) {
			plan.look(until)
		}
	}
	plan.Bundle = kept.pem()
	return kept
}

// serving decides about the serving certificate.
func (r Rules) serving(now time.Time, s State, signer pair, known bundle, plan *Plan) error {
	current, problem := s.Serving.parse()
	facts := credential.Facts{Problem: problem}
	if problem == nil {
		facts.Problem = r.check(now, current.cert, known)
	}
	if facts.Problem == nil {
		facts.Validity = validity(current.cert)
		facts.RenewAt = renewAt(current.cert)
	}
	need, due := credential.Due().Judge(facts, now)
	if !due && current.cert.CheckSignatureFrom(signer.cert) != nil {
		need, due = credential.Need{Reason: credential.NearExpiry, Message: "the CA is a new one"}, true
	}
	if !due {
		plan.look(facts.RenewAt)
		return nil
	}
	_, useless := credential.Unusable().Judge(facts, now)
	if ready := r.mayIssue(now, s, signer.cert); !useless && now.Before(ready) {
		plan.look(ready)
		return nil
	}
	made, err := newServing(signer, now, r.ServingLife, r.DNSNames)
	if err != nil {
		return err
	}
	plan.Serving, plan.Why = &made, append(plan.Why, "the serving certificate: "+need.Message)
	issued, err := made.parse()
	if err != nil {
		return err
	}
	plan.look(renewAt(issued.cert))
	return nil
}

// check says what makes a serving certificate useless.
func (r Rules) check(now time.Time, cert *x509.Certificate, known bundle) error {
	if !slices.Equal(cert.DNSNames, r.DNSNames) {
		return fmt.Errorf("%w: it is for %v", credential.ErrWrongIdentity, cert.DNSNames)
	}
	if now.After(cert.NotAfter) {
		return nil // The rules say so themselves.
	}
	_, err := cert.Verify(x509.VerifyOptions{Roots: known.pool(), CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	if unknown := new(x509.UnknownAuthorityError); errors.As(err, unknown) {
		return fmt.Errorf("%w: it was signed by a CA that is not in the bundle", credential.ErrMalformed)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", credential.ErrMalformed, err)
	}
	return nil
}

// poll is how often to look whether callers trust a new CA. They are watched;
// this is for what a watch may have missed.
const poll = 5 * time.Second

// mayIssue is when a CA may sign what replaces a certificate that is still
// good: once everybody trusts it, and had the time to see it.
func (r Rules) mayIssue(now time.Time, s State, ca *x509.Certificate) time.Time {
	if s.TrustedSince.IsZero() || !s.trusts(ca) {
		return now.Add(poll)
	}
	return s.TrustedSince.Add(r.Settle)
}

// look moves Next to at if that is earlier.
func (p *Plan) look(at time.Time) {
	if p.Next.IsZero() || at.Before(p.Next) {
		p.Next = at
	}
}
