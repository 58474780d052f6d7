package csr

import (
	"crypto"
	"crypto/x509"
	"fmt"
	"slices"
	"time"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pemutil"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// clockTolerance is how far in the future a new certificate may begin: the
// hub's clock may be that much ahead of ours, and it is the hub that judges the
// certificate when it is used.
const clockTolerance = 5 * time.Minute

// issued turns a CSR's certificate into a credential, or says why it is none.
func (a *Agent) issued(req *request, certificate []byte) (*driver.Issued, error) {
	validity, err := inspect(a.config.Identity, req.keyPEM, certificate)
	if err != nil {
		return nil, err
	}
	now := a.config.Clock.Now()
	if validity.Expired(now) {
		return nil, fmt.Errorf("it expired at %s", validity.NotAfter.UTC().Format(time.RFC3339))
	}
	if validity.NotBefore.After(now.Add(clockTolerance)) {
		return nil, fmt.Errorf("it is not valid before %s; check the clocks of hub and managed cluster", validity.NotBefore.UTC().Format(time.RFC3339))
	}
	return &driver.Issued{
		Data:     driver.Data{names.KeyTLSKey: req.keyPEM, names.KeyTLSCert: certificate},
		User:     clientcmdapi.AuthInfo{ClientCertificate: names.KeyTLSCert, ClientKey: names.KeyTLSKey},
		Validity: validity,
	}, nil
}

// inspect judges a key and a certificate chain as a credential of id.
func inspect(id driver.Identity, keyPEM, certPEM []byte) (credential.Validity, error) {
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
	return inspectLeaf(id, key.Public(), chain[0])
}

func inspectLeaf(id driver.Identity, pub crypto.PublicKey, leaf *x509.Certificate) (credential.Validity, error) {
	if !samePublicKey(leaf.PublicKey, pub) {
		return credential.Validity{}, fmt.Errorf("%w: the certificate is not for the private key", credential.ErrMalformed)
	}
	if !slices.Contains(leaf.ExtKeyUsage, x509.ExtKeyUsageClientAuth) {
		return credential.Validity{}, fmt.Errorf("%w: the certificate is not for client authentication", credential.ErrMalformed)
	}
	want := names.AgentUser(id.Cluster, id.Agent)
	if leaf.Subject.CommonName != want {
		return credential.Validity{}, fmt.Errorf("%w: it is for %q and not for %q", credential.ErrWrongIdentity, leaf.Subject.CommonName, want)
	}
	groups := slices.Compact(slices.Sorted(slices.Values(leaf.Subject.Organization)))
	if !slices.Equal(groups, organizations(id)) {
		return credential.Validity{}, fmt.Errorf("%w: its groups are %q and not %q", credential.ErrWrongIdentity, groups, organizations(id))
	}
	return credential.Validity{NotBefore: leaf.NotBefore, NotAfter: leaf.NotAfter}, nil
}
