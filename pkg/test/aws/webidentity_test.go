package aws_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sts"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/aws"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/issuer"
)

// TestAssumeRoleWithWebIdentity tries tokens that no API server issues.
func TestAssumeRoleWithWebIdentity(t *testing.T) {
	t.Parallel()
	cloud := aws.Start(t)
	key, stranger := issuer.NewKey(t, "RS256"), issuer.NewKey(t, "RS256")
	stranger.ID = key.ID
	provider := cloud.AddProvider(t, "aws", managedAccount, issuerURL, issuer.JWKS(t, key))
	name := issuerURL[len("https://"):]
	cloud.AddRole(t, aws.Role{ARN: managedRole, Trust: trusting(`{"Federated":"`+provider+`"}`, `"sts:AssumeRoleWithWebIdentity"`,
		`{"StringEquals":{"`+name+`:sub":"system:serviceaccount:ns:agent","`+name+`:aud":"sts.amazonaws.com"}}`)})
	c := newClients(t, cloud, region, aws.Credentials{})
	now := clock.RealClock{}.Now()
	claims := func(changes ...map[string]any) map[string]any {
		return issuer.BoundClaims(issuerURL, "ns", "agent", now, append([]map[string]any{{"aud": []string{"sts.amazonaws.com"}}}, changes...)...)
	}
	for what, test := range map[string]struct{ token, role, want string }{
		"as trusted":          {token: key.Token(t, claims())},
		"no token":            {token: "not.a.jwt", want: "InvalidIdentityToken"},
		"signed by another":   {token: stranger.Token(t, claims()), want: "InvalidIdentityToken"},
		"of another issuer":   {token: key.Token(t, claims(map[string]any{"iss": issuerURL + "1"})), want: "InvalidIdentityToken"},
		"for another":         {token: key.Token(t, claims(map[string]any{"aud": []string{"hub"}})), want: "InvalidIdentityToken"},
		"expired":             {token: key.Token(t, claims(map[string]any{"exp": now.Add(-time.Minute).Unix()})), want: "ExpiredTokenException"},
		"without an end":      {token: key.Token(t, claims(map[string]any{"exp": nil})), want: "ExpiredTokenException"},
		"not yet valid":       {token: key.Token(t, claims(map[string]any{"nbf": now.Add(time.Hour).Unix()})), want: "InvalidIdentityToken"},
		"of another account":  {token: key.Token(t, claims(map[string]any{"sub": "system:serviceaccount:ns:other"})), want: "AccessDenied"},
		"for no role":         {token: key.Token(t, claims()), role: hubRole, want: "AccessDenied"},
		"unsigned":            {token: key.Sign(t, map[string]any{"alg": "none"}, []byte(`{}`)), want: "InvalidIdentityToken"},
		"an unknown key's id": {token: key.Sign(t, map[string]any{"alg": "RS256", "kid": "x"}, []byte(`{"iss":"`+issuerURL+`"}`)), want: "InvalidIdentityToken"},
	} {
		role := managedRole
		if test.role != "" {
			role = test.role
		}
		out, err := c.sts.AssumeRoleWithWebIdentity(t.Context(), &sts.AssumeRoleWithWebIdentityInput{
			RoleArn: &role, RoleSessionName: new("agent"), WebIdentityToken: &test.token,
		})
		expect(t, what, err, test.want)
		if err == nil && (*out.SubjectFromWebIdentityToken != "system:serviceaccount:ns:agent" || *out.Provider != provider) {
			t.Errorf("%s: got %+v", what, out)
		}
	}
	token := key.Token(t, claims())
	cloud.Advance(2 * time.Hour)
	_, err := c.sts.AssumeRoleWithWebIdentity(t.Context(), &sts.AssumeRoleWithWebIdentityInput{
		RoleArn: new(managedRole), RoleSessionName: new("agent"), WebIdentityToken: &token,
	})
	expect(t, "two hours later", err, "ExpiredTokenException")
}
