package jwks

import (
	"fmt"
	"strings"
)

// SharedKeyError says that one key stands for several clusters: the owner of
// it could be any of them, so it proves nothing.
type SharedKeyError struct {
	// Issuer and KeyID are where the key was found.
	Issuer, KeyID string
	// Thumbprint is the common thumbprint of the keys.
	Thumbprint string
	// Clusters are all clusters with the key, at least two, sorted.
	Clusters []string
}

func (e *SharedKeyError) Error() string {
	return fmt.Sprintf("clusters %s have one and the same key %s (issuer %q): give each cluster a signing key of its own",
		strings.Join(e.Clusters, " and "), e.KeyID, e.Issuer)
}
