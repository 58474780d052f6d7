package subject

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwk"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/denial"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/jwks"
)

// attempt is the verification of one token, filled in check by check.
type attempt struct {
	token string
	now   time.Time

	parts      compact
	header     header
	claims     *claims
	candidates []jwks.Key
	lookupErr  *denial.Error
	rules      *Rules
	// identity holds nothing but what is proven already.
	identity Identity
}

// check is one link of the chain.
type check struct {
	name string
	// do refuses or lets pass.
	do func(context.Context, *attempt) *denial.Error
	// found says, after do let pass, what it saw.
	found func(*attempt) string
}

// chain is the order of the checks, cheap ones first: a token that is denied
// shall not cost much. Nothing is trusted before "signature".
func (v *Verifier) chain() []check {
	return []check{
		{"size", always(func(a *attempt) *denial.Error { return checkSize(a.token) }), (*attempt).foundSize},
		{"form", always((*attempt).checkForm), func(*attempt) string { return "three segments in base64url" }},
		{"header", always((*attempt).checkHeader), (*attempt).foundHeader},
		{"payload", always((*attempt).checkPayload), func(*attempt) string { return "JSON without repeated members" }},
		{"issuer", v.checkIssuer, func(a *attempt) string { return fmt.Sprintf("%q is known", a.claims.issuer) }},
		{"key", always((*attempt).checkKey), (*attempt).foundKey},
		{"signature", always((*attempt).checkSignature), (*attempt).foundSignature},
		{"rules", always(v.checkRules), (*attempt).foundRules},
		{"form of the claims", always((*attempt).checkClaimsForm), (*attempt).foundClaimsForm},
		{"end", always((*attempt).checkEnd), (*attempt).foundEnd},
		{"begin", always((*attempt).checkBegin), (*attempt).foundBegin},
		{"age", always((*attempt).checkAge), (*attempt).foundAge},
		{"audience", always((*attempt).checkAudience), (*attempt).foundAudience},
		{"account", always((*attempt).checkAccount), (*attempt).foundAccount},
		{"subject", always((*attempt).checkSubject), func(a *attempt) string { return a.claims.subject }},
		{"binding", always((*attempt).checkBinding), (*attempt).foundBinding},
		{"intended end", always((*attempt).checkWarnAfter), (*attempt).foundWarnAfter},
	}
}

// always makes a link of a check that never waits.
func always(do func(*attempt) *denial.Error) func(context.Context, *attempt) *denial.Error {
	return func(_ context.Context, a *attempt) *denial.Error { return do(a) }
}

func checkSize(token string) *denial.Error {
	switch {
	case token == "":
		return denial.New(denial.MissingToken, "there is no token")
	case len(token) > MaxTokenBytes:
		return denial.New(denial.Malformed, "it has %d bytes, and %d are the limit", len(token), MaxTokenBytes)
	}
	return nil
}

func (a *attempt) checkForm() (denied *denial.Error) {
	a.parts, denied = split(a.token)
	return denied
}

func (a *attempt) checkHeader() (denied *denial.Error) {
	a.header, denied = parseHeader(a.parts.header)
	return denied
}

func (a *attempt) checkPayload() *denial.Error {
	claims, err := parseClaims(a.parts.payload)
	if err != nil {
		return denial.New(denial.Malformed, "its payload: %w", err)
	}
	a.claims = claims
	return nil
}

// checkIssuer looks the key up and checks the issuer: the claims, once read, are
// the ones whose signature is checked, so that the issuer needs no second look.
func (v *Verifier) checkIssuer(ctx context.Context, a *attempt) *denial.Error {
	if a.claims.issuer == "" {
		return denial.New(denial.Malformed, "it has no issuer (iss)")
	}
	if n := len(a.header.keyID); n == 0 || n > maxKeyIDBytes {
		a.lookupErr = denial.New(denial.UnknownKey, "its key id (kid) has %d bytes, where 1 to %d are taken", n, maxKeyIDBytes)
		return nil
	}
	keys, err := v.keys.Lookup(ctx, a.claims.issuer, a.header.keyID)
	if err == nil {
		a.candidates = keys
		return nil
	}
	a.lookupErr = lookupError(ctx, err)
	if a.lookupErr.Reason != denial.UnknownIssuer {
		return nil
	}
	if a.claims.flat && !a.claims.nested {
		return denial.New(denial.LegacyToken,
			"it is a Secret's token of the issuer %q, and no cluster is configured to have such tokens taken", clip(a.claims.issuer))
	}
	return a.lookupErr
}

// lookupError finds the reason of a failed lookup; an error without one is our fault.
func lookupError(ctx context.Context, err error) *denial.Error {
	if denied, ok := errors.AsType[*denial.Error](err); ok {
		return denied
	}
	if ctx.Err() != nil {
		return denial.New(denial.Deadline, "the caller did not wait for the keys: %w", err)
	}
	return denial.New(denial.KeysUnavailable, "looking up the key: %w", err)
}

func (a *attempt) checkKey() *denial.Error {
	if a.lookupErr == nil && len(a.candidates) == 0 {
		return denial.New(denial.UnknownKey, "the issuer has no key %q", clip(a.header.keyID))
	}
	return a.lookupErr
}

// checkSignature tries every candidate, also after one matched: if two clusters
// hold the same key, they cannot be distinguished.
func (a *attempt) checkSignature() *denial.Error {
	token, why := jwk.ParseToken(a.token)
	if why != nil {
		return denial.New(denial.BadSignature, "its signature cannot be verified: %w", why)
	}
	cluster := ""
	for i := range a.candidates {
		key := &a.candidates[i]
		if err := key.Verify(token); err != nil {
			why = err
			continue
		}
		if cluster != "" && cluster != key.Cluster {
			return denial.New(denial.AmbiguousKey, "both %s and %s have the key %q that verifies it",
				cluster, key.Cluster, clip(a.header.keyID))
		}
		cluster = key.Cluster
	}
	if cluster == "" {
		return denial.New(denial.BadSignature, "the key %q of the issuer did not sign it: %w", clip(a.header.keyID), why)
	}
	a.identity.Cluster = cluster
	a.identity.Token = Token{Issuer: a.claims.issuer, KeyID: a.header.keyID, ID: a.claims.id}
	return nil
}

func (v *Verifier) checkRules(a *attempt) *denial.Error {
	if a.rules = v.rules(a.identity.Cluster); a.rules == nil {
		return denial.New(denial.NotAllowed, "the cluster %s has no entry in the configuration", a.identity.Cluster)
	}
	return nil
}
