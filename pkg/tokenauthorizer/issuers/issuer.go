package issuers

import (
	"crypto/ecdsa"
	"crypto/rsa"
	"fmt"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwk"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/jwks"
)

// Sources of keys.
const (
	// SourceHub are keys that the cluster's agent publishes on the hub.
	SourceHub = "hub"
	// SourceInline, SourceFile, SourceURI and SourceDiscovery are the sources of the
	// configuration.
	SourceInline    = "inline"
	SourceFile      = "file"
	SourceURI       = "uri"
	SourceDiscovery = "discovery"
)

// Reasons that no condition of the hub has.
const (
	// ReasonConfigured: an administrator put the keys into the configuration.
	ReasonConfigured = "Configured"
	// ReasonNotPublished: the configuration expects keys that no cluster publishes.
	ReasonNotPublished = "NotPublished"
	// ReasonIssuerDiffers: the configuration expects another issuer than is published.
	ReasonIssuerDiffers = "IssuerDiffers"
	// ReasonKeysInvalid: configured keys cannot be used.
	ReasonKeysInvalid = "KeysInvalid"
	// ReasonNotLoaded: no token authorizer has read the configured source of keys yet.
	ReasonNotLoaded = "NotLoaded"
)

// Key is the stable schema of a public key.
type Key struct {
	ID string `json:"id"`
	// Type is the kind and size, such as "RSA 2048" or "P-256".
	Type string `json:"type"`
	// Algorithm is empty where the key set names none.
	Algorithm string `json:"algorithm,omitempty"`
	// Thumbprint is the RFC 7638 thumbprint with SHA-256.
	Thumbprint string `json:"thumbprint"`
}

// Issuer is the stable schema of a cluster's token issuer.
type Issuer struct {
	Cluster string `json:"cluster"`
	// Issuer is the exact "iss"; empty while it is not known.
	Issuer string `json:"issuer,omitempty"`
	// Source is the source of the keys: hub, inline, file, uri or discovery.
	Source string `json:"source"`
	// Location is the file or URL of the source.
	Location string `json:"location,omitempty"`
	// Keys are the trusted keys, if they can be read without calling the source.
	Keys []Key `json:"keys,omitempty"`
	// Unproven are the ids of published keys that the cluster has not proven to
	// sign with, which do not count.
	Unproven []string `json:"unproven,omitempty"`
	// PublishedAt is when the published data last changed.
	PublishedAt *time.Time `json:"publishedAt,omitempty"`
	// Trusted reports whether tokens are accepted.
	Trusted bool `json:"trusted"`
	// Reason and Message say why, or why not.
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"`
	// Audiences are the audiences that the configuration requires.
	Audiences []string `json:"audiences,omitempty"`

	// Set is the key set behind Keys.
	Set jwk.Set `json:"-"`
	// From is the configured source; zero for keys that are published.
	From jwks.Source `json:"-"`
}

// setKeys takes over a key set.
func (i *Issuer) setKeys(set jwk.Set) {
	i.Set = set
	for _, key := range set.Keys {
		i.Keys = append(i.Keys, Key{ID: key.ID, Type: kind(key), Algorithm: key.Algorithm, Thumbprint: key.Thumbprint})
	}
}

func kind(key jwk.Key) string {
	switch public := key.Public.(type) {
	case *rsa.PublicKey:
		return fmt.Sprintf("RSA %d", public.N.BitLen())
	case *ecdsa.PublicKey:
		return public.Curve.Params().Name
	}
	return "unknown"
}
