package keytrust

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwk"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// Candidate is a cluster with the data that it publishes, nil if it publishes none.
type Candidate struct {
	Cluster Cluster
	Data    map[string]string
}

// Decision selects the trusted keys among those that a cluster publishes, unless the
// configuration of a token authorizer overrides it.
type Decision struct {
	Publication

	// Counting are the keys whose tokens are this cluster's.
	Counting []jwk.Key
	// Rejection is why a key does not count that should; its zero value is set
	// where every proven key counts.
	Rejection Rejection
	// Message describes the decision in a sentence.
	Message string
}

// Trusted reports whether the published keys count, without a reservation.
func (d Decision) Trusted() bool { return d.Rejection.Reason == "" }

// Decide decides about what one cluster publishes. Sharing returns the clusters
// that publish the key with a thumbprint; more than those, and the cluster
// itself, do no harm.
func Decide(self Candidate, sharing func(thumbprint string) []Candidate) Decision {
	if silent := self.Cluster.Silent(); silent.Reason != "" {
		return Decision{Rejection: silent, Message: silent.Message}
	}
	p, err := Read(self.Cluster, self.Data)
	if err != nil {
		return refuse(Decision{}, names.ReasonKeysInvalid, "What the cluster publishes cannot be used: %v", err)
	}
	d := Decision{Publication: p}
	if len(p.Keys) == 0 {
		return refuse(d, names.ReasonKeysUnproven,
			"The cluster has not proven that it signs tokens with %s; look at the condition IssuerPublished of its Klusterlet", strings.Join(p.Unproven, ", "))
	}
	var shared string
	var with []string
	for _, key := range p.Keys {
		own := Claim{Cluster: self.Cluster.Name, Issuers: []string{p.Issuer}, Support: Proven}
		claims := provenBy(key.Thumbprint, sharing(key.Thumbprint))
		if !own.Refused(p.Issuer, claims) {
			d.Counting = append(d.Counting, key)
			continue
		}
		if shared == "" {
			shared, with = key.ID, others(self.Cluster.Name, claims)
		}
	}
	if shared != "" {
		return refuse(d, names.ReasonKeysShared,
			"Cluster %s signs with key %s as well, so tokens that it signed are refused for both: give one of the clusters a signing key of its own%s",
			strings.Join(with, ", "), shared, counting(d.Counting))
	}
	d.Message = fmt.Sprintf("Tokens of issuer %s signed with %s are this cluster's", p.Issuer, strings.Join(ids(p.Keys), ", "))
	if len(p.Unproven) > 0 {
		d.Message += fmt.Sprintf("; %s does not count until the cluster signs with it", strings.Join(p.Unproven, ", "))
	}
	return d
}

func refuse(d Decision, reason, format string, args ...any) Decision {
	d.Rejection = Rejection{Reason: reason, Message: fmt.Sprintf(format, args...)}
	d.Message = d.Rejection.Message
	return d
}

func counting(keys []jwk.Key) string {
	if len(keys) == 0 {
		return ""
	}
	return "; tokens signed with " + strings.Join(ids(keys), ", ") + " are still accepted"
}

// provenBy returns the claims of the candidates that have proven the key.
func provenBy(thumbprint string, candidates []Candidate) []Claim {
	var claims []Claim
	for _, candidate := range candidates {
		if candidate.Cluster.Silent().Reason != "" {
			continue
		}
		p, err := Read(candidate.Cluster, candidate.Data)
		if err == nil && slices.ContainsFunc(p.Keys, func(key jwk.Key) bool { return key.Thumbprint == thumbprint }) {
			claims = append(claims, Claim{Cluster: candidate.Cluster.Name, Issuers: []string{p.Issuer}, Support: Proven})
		}
	}
	return claims
}

func others(self string, claims []Claim) []string {
	var found []string
	for _, claim := range claims {
		if claim.Cluster != self {
			found = append(found, claim.Cluster)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

func ids(keys []jwk.Key) []string {
	out := make([]string, len(keys))
	for i, key := range keys {
		out[i] = key.ID
	}
	return out
}
