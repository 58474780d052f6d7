package csr

import (
	"crypto"
	"crypto/x509"
	"fmt"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pemutil"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// issued turns a CSR's certificate into a credential, or reports why it is not usable.
func (r *requester) issued(req *request, certificate []byte) (*driver.Issued, error) {
	validity, err := r.wanted.inspect(req.keyPEM, certificate)
	if err != nil {
		return nil, err
	}
	if err := validity.CheckIssued(r.clock.Now()); err != nil {
		return nil, err
	}
	return &driver.Issued{
		Data:     driver.Data{names.KeyTLSKey: req.keyPEM, names.KeyTLSCert: certificate},
		Validity: validity,
	}, nil
}

// inspect validates a key and a certificate chain as the wanted credential.
func (w *wanted) inspect(keyPEM, certPEM []byte) (credential.Validity, error) {
	if len(keyPEM) == 0 || len(certPEM) == 0 {
		return credential.Validity{}, fmt.Errorf("no %s and %s: %w", names.KeyTLSKey, names.KeyTLSCert, credential.ErrMissing)
	}
	key, err := pemutil.ParseKey(keyPEM)
	if err != nil {
		return credential.Validity{}, fmt.Errorf("%w: %w", credential.ErrMalformed, err)
	}
	chain, err := pemutil.ParseCertificates(certPEM)
	if err != nil {
		return credential.Validity{}, fmt.Errorf("%w: %w", credential.ErrMalformed, err)
	}
	return w.inspectLeaf(key.Public(), chain[0])
}

func (w *wanted) inspectLeaf(pub crypto.PublicKey, leaf *x509.Certificate) (credential.Validity, error) {
	if !samePublicKey(leaf.PublicKey, pub) {
		return credential.Validity{}, fmt.Errorf("%w: the certificate is not for the private key", credential.ErrMalformed)
	}
	if !w.usable(leaf.ExtKeyUsage) {
		return credential.Validity{}, fmt.Errorf("%w: the certificate is not for client authentication", credential.ErrMalformed)
	}
	if leaf.Subject.CommonName != w.user {
		return credential.Validity{}, fmt.Errorf("%w: the certificate is for %q, not for %q", credential.ErrWrongIdentity, leaf.Subject.CommonName, w.user)
	}
	if groups := sorted(leaf.Subject.Organization); !slices.Equal(groups, w.groups) {
		return credential.Validity{}, fmt.Errorf("%w: the groups of the certificate are %q, not %q", credential.ErrWrongIdentity, groups, w.groups)
	}
	if units := sorted(leaf.Subject.OrganizationalUnit); !slices.Equal(units, w.units) {
		return credential.Validity{}, fmt.Errorf("%w: the organizational units of the certificate are %q, not %q", credential.ErrWrongIdentity, units, w.units)
	}
	return credential.Validity{NotBefore: leaf.NotBefore, NotAfter: leaf.NotAfter}, nil
}

// usable reports whether a certificate for these usages can be shown by a
// client. A custom signer may leave them out, which allows all.
func (w *wanted) usable(usages []x509.ExtKeyUsage) bool {
	if len(usages) == 0 {
		return w.signer != certificatesv1.KubeAPIServerClientSignerName
	}
	return slices.Contains(usages, x509.ExtKeyUsageClientAuth) || slices.Contains(usages, x509.ExtKeyUsageAny)
}
