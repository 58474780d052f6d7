package trust

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwk"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// maxIssuer is the longest issuer that is taken, in bytes; API servers take URLs.
const maxIssuer = 1024

// Published is what a cluster's ConfigMap says.
type Published struct {
	// Issuer is the exact "iss" of the cluster's tokens.
	Issuer string
	// Keys can verify them; there is at least one.
	Keys []jwk.Key
}

// errIssuer says that the published issuer cannot be one.
var errIssuer = errors.New("the published issuer is unusable")

// Parse reads a published ConfigMap, which a cluster wrote and may be anything.
func Parse(m *corev1.ConfigMap) (Published, error) {
	issuer := m.Data[names.IssuerKeyIssuer]
	switch {
	case issuer == "":
		return Published{}, fmt.Errorf("%w: key %s is missing or empty", errIssuer, names.IssuerKeyIssuer)
	case len(issuer) > maxIssuer:
		return Published{}, fmt.Errorf("%w: it is longer than %d bytes", errIssuer, maxIssuer)
	case strings.ContainsFunc(issuer, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }):
		return Published{}, fmt.Errorf("%w: it has characters that no issuer has", errIssuer)
	}
	set, err := jwk.Parse([]byte(m.Data[names.IssuerKeyJWKS]))
	if err != nil {
		return Published{}, fmt.Errorf("the published key set: %w", err)
	}
	return Published{Issuer: issuer, Keys: set.Keys}, nil
}

// thumbprints are those of the keys in a ConfigMap, as far as it can be read.
func thumbprints(m *corev1.ConfigMap) []string {
	published, err := Parse(m)
	if err != nil {
		return nil
	}
	prints := make([]string, len(published.Keys))
	for i, key := range published.Keys {
		prints[i] = key.Thumbprint
	}
	return prints
}
