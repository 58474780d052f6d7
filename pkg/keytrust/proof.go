package keytrust

import (
	"strings"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwk"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// Limits of the proofs that are evaluated.
const (
	maxProofs     = jwk.MaxKeys
	maxProofBytes = 16 << 10
)

// Audience is the audience of the tokens that prove that c signs with a key. The tokens
// open nothing: no server has this name.
func (c Cluster) Audience() string { return names.IssuerProofAudience(c.Name, c.UID) }

// Proofs returns, by key id, the proofs in text that hold: tokens, one per line,
// that a key of keys signed for c. Their times do not matter. That a cluster
// once signed with a key stays true, so a proof needs no renewal, and the proof
// of a key that the API server only verifies with since a rotation still stands.
func Proofs(c Cluster, issuer string, keys []jwk.Key, text string) map[string]string {
	found := make(map[string]string)
	if c.Name == "" || c.UID == "" {
		return found
	}
	byID := make(map[string]*jwk.Key, len(keys))
	for i := range keys {
		byID[keys[i].ID] = &keys[i]
	}
	seen := 0
	for line := range strings.Lines(text) {
		if seen++; seen > maxProofs {
			break
		}
		token := strings.TrimSpace(line)
		if id, ok := proves(c, issuer, byID, token); ok {
			found[id] = token
		}
	}
	return found
}

// proves returns the id of the key that signed text, if text is a proof of c.
func proves(c Cluster, issuer string, keys map[string]*jwk.Key, text string) (string, bool) {
	if len(text) > maxProofBytes {
		return "", false
	}
	token, err := jwk.ParseToken(text)
	if err != nil {
		return "", false
	}
	var claims struct {
		Issuer    string   `json:"iss"`
		Subject   string   `json:"sub"`
		Audiences []string `json:"aud"`
	}
	key := keys[token.KeyID()]
	if key == nil || token.UnverifiedClaims(&claims) != nil || claims.Issuer != issuer || !byAgent(claims.Subject) ||
		len(claims.Audiences) != 1 || claims.Audiences[0] != c.Audience() {
		return "", false
	}
	return key.ID, key.Verify(token) == nil
}

// byAgent reports whether a token's subject may prove keys.
func byAgent(subject string) bool {
	namespace, account, ok := names.ParseServiceAccountUser(subject)
	return ok && IsAgent(namespace, account)
}

// IsAgent reports whether a ServiceAccount of a cluster may prove its keys: one in the
// namespace of OCM's agents, or a registration agent in another namespace of OCM that is not
// the add-ons'. Tenants of a cluster can request tokens with any audience for their own
// ServiceAccounts: if those counted, a tenant could prove the cluster's keys for another
// cluster.
func IsAgent(namespace, account string) bool {
	return namespace == names.AgentNamespace ||
		strings.HasPrefix(namespace, names.AgentNamespacePrefix) && namespace != names.AddOnNamespace &&
			strings.HasSuffix(account, names.RegistrationAgentServiceAccount(""))
}
