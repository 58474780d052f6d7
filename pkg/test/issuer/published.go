package issuer

import (
	"strings"
	"testing"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// Proof is a token of a cluster's agent that proves that the cluster signs with the
// key. It is as old as possible, which must not matter. Changes are applied to its
// claims, as by BoundClaims.
func (k *Key) Proof(tb testing.TB, issuer, cluster, uid string, changes ...map[string]any) string {
	tb.Helper()
	audience := map[string]any{"aud": []string{names.IssuerProofAudience(cluster, uid)}}
	account := names.RegistrationAgentServiceAccount(names.KlusterletName)
	return k.Token(tb, BoundClaims(issuer, names.AgentNamespace, account, time.Unix(0, 0), append([]map[string]any{audience}, changes...)...))
}

// Published is the data of the ConfigMap that a cluster's agent publishes: keys,
// each with its proof.
func Published(tb testing.TB, issuer, cluster, uid string, keys ...*Key) map[string]string {
	tb.Helper()
	proofs := make([]string, len(keys))
	for i, key := range keys {
		proofs[i] = key.Proof(tb, issuer, cluster, uid)
	}
	return map[string]string{
		names.IssuerKeyIssuer: issuer, names.IssuerKeyJWKS: string(JWKS(tb, keys...)),
		names.IssuerKeyProofs: strings.Join(proofs, "\n"), names.IssuerKeyPublishedAt: "2031-01-01T00:00:00Z",
	}
}
