package jwks

import (
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwk"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/keytrust"
)

// TakeProven is Observe with keys whose proofs were verified: tests of size have
// keys that nobody can sign with.
func (s *Store) TakeProven(c keytrust.Cluster, issuer string, set []byte) error {
	parsed, err := jwk.Parse(set)
	if err != nil {
		return err
	}
	return s.take(&publication{
		seen:   keytrust.Candidate{Cluster: c, Data: map[string]string{}},
		proven: keytrust.Publication{Issuer: issuer, Keys: parsed.Keys},
	})
}
