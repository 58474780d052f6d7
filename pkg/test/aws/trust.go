package aws

import (
	"net/http"
	"slices"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/aws/policy"
)

// maxTrustBytes is how long a trust policy may be.
const maxTrustBytes = 2048

// trust is a trust policy as it was saved. IAM then resolves the ARNs of roles to
// their unique ids, so that a role that is recreated under an old name is not
// trusted.
//
// Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_elements_principal.html
type trust struct {
	text     string
	document *policy.Document
	// pinned are the unique ids of the roles that it names by ARN.
	pinned map[string]string
	sight  sight
}

// newTrust checks a trust policy as IAM does on save: it must be valid, small
// enough, and name principals that exist.
func (c *Cloud) newTrust(text string) (trust, error) {
	malformed := func(format string, args ...any) (trust, error) {
		return trust{}, fail(http.StatusBadRequest, "MalformedPolicyDocument", format, args...)
	}
	if len(text) > maxTrustBytes {
		return trust{}, fail(http.StatusConflict, "LimitExceeded", "Cannot exceed quota for ACLSizePerRole: %d", maxTrustBytes)
	}
	document, err := policy.ParseTrust(text)
	if err != nil {
		return malformed("%v", err)
	}
	t := trust{text: text, document: document, pinned: map[string]string{}, sight: c.written()}
	for _, name := range document.Principals("AWS") {
		switch r := c.roles[name]; {
		case r != nil && c.sightOf(r) != nil:
			t.pinned[name] = r.ID
		case !c.exists(name):
			return malformed(`Invalid principal in policy: "AWS":"%s"`, name)
		}
	}
	return t, nil
}

// exists reports whether a trust policy may name a principal that is no role.
func (c *Cloud) exists(name string) bool {
	if name == "*" {
		return true
	}
	for a := range c.accounts {
		if name == a.id || name == a.iamARN("root") {
			return true
		}
	}
	for _, p := range c.keys {
		if p.arn == name {
			return true
		}
	}
	return false
}

// sightOf is the trust policy that STS sees, nil of a role that it does not see.
func (c *Cloud) sightOf(r *role) *trust {
	for i := range slices.Backward(r.trusts) {
		if c.sees(r.trusts[i].sight) {
			return &r.trusts[i]
		}
	}
	return nil
}

// names returns the ARNs that name a principal in the trust policy. The ARN of a role
// that was recreated since then is not among them: its id differs.
func (t *trust) names(p *principal) []string {
	return slices.DeleteFunc(p.names(), func(name string) bool {
		id, pinned := t.pinned[name]
		return pinned && id != p.role.ID
	})
}
