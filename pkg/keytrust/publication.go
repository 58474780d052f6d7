package keytrust

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwk"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// MaxIssuerBytes is the longest issuer that is accepted anywhere. API servers
// take URLs.
const MaxIssuerBytes = 1024

// Publication is the usable part of a cluster's publication.
type Publication struct {
	// Issuer is the exact "iss" of the cluster's tokens.
	Issuer string
	// Keys are the keys that the cluster has proven to sign with.
	Keys []jwk.Key
	// Unproven are the ids of the other keys, which are not trusted.
	Unproven []string
	// Ignored says of each key that no signature can be verified with why.
	Ignored []string
}

// Read reads the data of the ConfigMap that c publishes, which may hold anything.
// An error means that nothing in it counts.
func Read(c Cluster, data map[string]string) (Publication, error) {
	p := Publication{Issuer: data[names.IssuerKeyIssuer]}
	if err := CheckIssuer(p.Issuer); err != nil {
		return Publication{}, err
	}
	set, err := jwk.Parse([]byte(data[names.IssuerKeyJWKS]))
	if err != nil {
		return Publication{}, fmt.Errorf("the published key set: %w", err)
	}
	p.Ignored = set.Reasons
	proven := Proofs(c, p.Issuer, set.Keys, data[names.IssuerKeyProofs])
	for _, key := range set.Keys {
		if proven[key.ID] == "" {
			p.Unproven = append(p.Unproven, key.ID)
			continue
		}
		p.Keys = append(p.Keys, key)
	}
	return p, nil
}

// CheckIssuer refuses what no token can have as its "iss".
func CheckIssuer(issuer string) error {
	switch {
	case issuer == "":
		return errors.New("the issuer is missing or empty")
	case len(issuer) > MaxIssuerBytes:
		return fmt.Errorf("the issuer is longer than %d bytes", MaxIssuerBytes)
	case strings.ContainsFunc(issuer, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }):
		return errors.New("the issuer has characters that no issuer has")
	}
	return nil
}

// Thumbprints returns those of the keys in what a cluster publishes, proven or
// not, so that the clusters that may claim one key can be found by it.
func Thumbprints(data map[string]string) []string {
	set, err := jwk.Parse([]byte(data[names.IssuerKeyJWKS]))
	if err != nil {
		return nil
	}
	prints := make([]string, len(set.Keys))
	for i, key := range set.Keys {
		prints[i] = key.Thumbprint
	}
	return prints
}
