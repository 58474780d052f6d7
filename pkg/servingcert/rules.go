package servingcert

import (
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
)

// Rules are the lifetimes of certificates and their DNS names.
type Rules struct {
	// CALife and ServingLife are the lifetimes of what is issued.
	CALife, ServingLife time.Duration
	// Settle is how long clients have to trust a new CA before it signs: an API
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

// State is the live state.
type State struct {
	Signer  KeyPair
	Serving KeyPair
	// Bundle is the published bundle.
	Bundle []byte
	// Trusted are the bundles with which clients verify the serving certificate.
	Trusted [][]byte
	// TrustedSince is since when all of them have the CA; zero if they do not.
	TrustedSince time.Time
}

// trusts reports whether all clients trust a CA.
func (s State) trusts(ca *x509.Certificate) bool {
	return !slices.ContainsFunc(s.Trusted, func(data []byte) bool { return !parseBundle(data).has(ca) })
}

// Plan is the set of writes. A nil part stays unchanged.
type Plan struct {
	// Signer and Serving are new certificates, and Why the reasons for them.
	Signer, Serving *KeyPair
	Why             []string
	// Bundle is the bundle to publish, always complete.
	Bundle []byte
	// Next is when to reconcile next.
	Next time.Time
}

// Decide returns what to write at now.
func (r Rules) Decide(now time.Time, s State) (Plan, error) {
	var plan Plan
	signer, err := r.signer(now, s.Signer, &plan)
	if err != nil {
		return Plan{}, err
	}
	trusted := r.trust(now, s, signer, &plan)
	return plan, r.serving(now, s, signer, trusted, &plan)
}

// signer returns the CA, a new one if it is due.
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
	need, due := credential.Due().Evaluate(facts, now)
	if !due {
		plan.requeue(facts.RenewAt)
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
	plan.requeue(renewAt(ca.cert))
	return ca, nil
}

// trust sets the bundle and returns it. If none is published, it begins with the CAs
// that clients trust.
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
	var retained bundle
	for i, ca := range known {
		until := ca.NotAfter
		if i > 0 && !ca.Equal(signer.cert) {
			// The newer one replaced it: what it signed has expired by then.
			if gone := known[i-1].NotBefore.Add(backdate + r.ServingLife + r.Settle); gone.Before(until) {
				until = gone
			}
		}
		if !now.Before(until) && !ca.Equal(signer.cert) {
			continue
		}
		retained = append(retained, ca)
		if !ca.Equal(signer.cert) {
			plan.requeue(until)
		}
	}
	plan.Bundle = retained.pem()
	return retained
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
	need, due := credential.Due().Evaluate(facts, now)
	if !due && current.cert.CheckSignatureFrom(signer.cert) != nil {
		need, due = credential.Need{Reason: credential.NearExpiry, Message: "the CA is a new one"}, true
	}
	if !due {
		plan.requeue(facts.RenewAt)
		return nil
	}
	_, useless := credential.Unusable().Evaluate(facts, now)
	if ready := r.mayIssue(now, s, signer.cert); !useless && now.Before(ready) {
		plan.requeue(ready)
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
	plan.requeue(renewAt(issued.cert))
	return nil
}

// check returns what makes a serving certificate unusable.
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

// poll is how often to check whether clients trust a new CA, in addition to the
// watches.
const poll = 5 * time.Second

// mayIssue returns when a CA may sign the replacement of a valid certificate: when all
// clients trust it, and had the time to see it.
func (r Rules) mayIssue(now time.Time, s State, ca *x509.Certificate) time.Time {
	if s.TrustedSince.IsZero() || !s.trusts(ca) {
		return now.Add(poll)
	}
	return s.TrustedSince.Add(r.Settle)
}

// requeue moves Next to at if that is earlier.
func (p *Plan) requeue(at time.Time) {
	if p.Next.IsZero() || at.Before(p.Next) {
		p.Next = at
	}
}
