package aws

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/aws/policy"
)

// Audience is who tokens for STS are for, unless an OIDC provider says otherwise.
const Audience = "sts.amazonaws.com"

// provider is an OIDC provider of an account.
type provider struct {
	arn, issuer string
	keys        jose.JSONWebKeySet
	audiences   []string
}

// AddProvider registers an issuer of tokens with an account and returns the ARN of the
// OIDC provider. Its keys are in jwks; another call replaces them. Without audiences it
// accepts tokens for sts.amazonaws.com.
func (c *Cloud) AddProvider(tb testing.TB, partition, id, issuer string, jwks []byte, audiences ...string) string {
	tb.Helper()
	if len(audiences) == 0 {
		audiences = []string{Audience}
	}
	a := account{partition, id}
	p := &provider{issuer: issuer, audiences: audiences, arn: a.iamARN("oidc-provider/" + issuerName(issuer))}
	if err := json.Unmarshal(jwks, &p.keys); err != nil {
		tb.Fatal(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.accounts[a] = true
	c.providers[p.arn] = p
	return p.arn
}

// RemoveProvider removes an OIDC provider.
func (c *Cloud) RemoveProvider(providerARN string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.providers, providerARN)
}

// getOpenIDConnectProvider leaves out what nothing here looks at: thumbprints and
// tags.
func (c *Cloud) getOpenIDConnectProvider(q *request) (any, error) {
	name := q.form.Get("OpenIDConnectProviderArn")
	if err := c.authorize(q, "iam:GetOpenIDConnectProvider", name, nil); err != nil {
		return nil, err
	}
	p := c.providers[name]
	if of, err := parseARN(name); p == nil || err != nil || of.account != q.caller.account.id || of.partition != q.caller.partition {
		return nil, missingEntity("OpenIDConnect Provider not found for arn %s", name)
	}
	audiences := list{}
	for _, audience := range p.audiences {
		audiences = append(audiences, audience)
	}
	return object{"Url": issuerName(p.issuer), "ClientIDList": audiences}, nil
}

// issuerName is how IAM and condition keys name an issuer.
func issuerName(issuer string) string { return strings.TrimPrefix(issuer, "https://") }

func (c *Cloud) assumeRoleWithWebIdentity(q *request) (any, error) {
	s, err := q.session()
	if err != nil {
		return nil, err
	}
	r := c.roles[q.form.Get("RoleArn")]
	denied := fail(http.StatusForbidden, "AccessDenied", "Not authorized to perform sts:AssumeRoleWithWebIdentity")
	if r == nil || r.arn.partition != q.partition {
		return nil, denied
	}
	p, claims, err := c.verifyToken(q.form.Get("WebIdentityToken"), r.account())
	if err != nil {
		return nil, err
	}
	name := issuerName(p.issuer)
	trusted := c.trusts(q, r, &policy.Request{
		Action: "sts:AssumeRoleWithWebIdentity", Resource: r.ARN,
		Caller: policy.Caller{Kind: "Federated", Names: []string{p.arn}, Account: r.arn.account},
		Context: map[string][]string{
			name + ":sub": {claims.Subject}, name + ":aud": claims.Audience, "aws:FederatedProvider": {p.arn},
			"sts:RoleSessionName": {s.name},
		},
	})
	if trusted.Effect != policy.Allowed {
		return nil, denied
	}
	if s.life > r.MaxSession {
		return nil, tooLong()
	}
	answer := assumed(c.newSession(r, s))
	answer["SubjectFromWebIdentityToken"], answer["Provider"], answer["Audience"] = claims.Subject, p.arn, claims.Audience[0]
	return answer, nil
}

// verifyToken verifies a token of an issuer that the account knows.
func (c *Cloud) verifyToken(token string, a account) (*provider, *jwt.Claims, error) {
	refuse := func(message string) (*provider, *jwt.Claims, error) {
		return nil, nil, fail(http.StatusBadRequest, "InvalidIdentityToken", "%s", message)
	}
	parsed, err := jwt.ParseSigned(token, []jose.SignatureAlgorithm{jose.RS256, jose.RS384, jose.RS512, jose.ES256, jose.ES384, jose.ES512})
	if err != nil {
		return refuse("The ID Token provided is not a valid JWT. (You may see this error if you sent an Access Token)")
	}
	var claims jwt.Claims
	if err := parsed.UnsafeClaimsWithoutVerification(&claims); err != nil {
		return refuse("The ID Token provided is not a valid JWT.")
	}
	p := c.providers[a.iamARN("oidc-provider/"+issuerName(claims.Issuer))]
	if p == nil || p.issuer != claims.Issuer {
		return refuse("No OpenIDConnect provider found in your account for " + claims.Issuer)
	}
	if err := parsed.Claims(p.keys, &claims); err != nil {
		return refuse("Couldn't retrieve verification key from your identity provider, or the signature is invalid")
	}
	if !slices.ContainsFunc(claims.Audience, func(audience string) bool { return slices.Contains(p.audiences, audience) }) {
		return refuse("Incorrect token audience")
	}
	if claims.Expiry == nil || !c.now().Before(claims.Expiry.Time()) {
		return nil, nil, fail(http.StatusBadRequest, "ExpiredTokenException",
			"Token expired: current date/time %s must be before the expiration date/time", c.now().UTC().Format(time.RFC3339))
	}
	if claims.NotBefore != nil && c.now().Add(signatureSkew).Before(claims.NotBefore.Time()) {
		return refuse("Token is not yet valid")
	}
	return p, &claims, nil
}
