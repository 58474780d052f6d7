package servingcert

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"slices"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pemutil"
)

// KeyPair is a certificate with its key, in PEM, as a Secret of type
// kubernetes.io/tls holds them.
type KeyPair struct {
	Cert []byte
	Key  []byte
}

// pair is a KeyPair that was read.
type pair struct {
	cert *x509.Certificate
	key  crypto.Signer
}

// parse reads a KeyPair whose certificate and key belong together. The error
// is one of those that the credential rules know.
func (p KeyPair) parse() (pair, error) {
	if len(p.Cert) == 0 && len(p.Key) == 0 {
		return pair{}, credential.ErrMissing
	}
	certs, err := pemutil.ParseCertificates(p.Cert)
	if err != nil {
		return pair{}, fmt.Errorf("%w: %w", credential.ErrMalformed, err)
	}
	key, err := pemutil.ParseKey(p.Key)
	if err != nil {
		return pair{}, fmt.Errorf("%w: %w", credential.ErrMalformed, err)
	}
	public, ok := key.Public().(interface {
		Equal(other crypto.PublicKey) bool
	})
	if !ok || !public.Equal(certs[0].PublicKey) {
		return pair{}, fmt.Errorf("%w: the key is not the certificate's", credential.ErrMalformed)
	}
	return pair{cert: certs[0], key: key}, nil
}

func validity(cert *x509.Certificate) credential.Validity {
	return credential.Validity{NotBefore: cert.NotBefore, NotAfter: cert.NotAfter}
}

// backdate makes a new certificate valid for a clock that is behind ours.
const backdate = 5 * time.Minute

// renewAt is when a certificate of ours is to be replaced.
func renewAt(cert *x509.Certificate) time.Time {
	return credential.RenewObtained(validity(cert), credential.Certificates(), cert.Subject.CommonName, cert.NotBefore.Add(backdate))
}

// newCA makes a CA, called what upstream calls it.
// See docs/reference/wire-contract.md#webhook-certificates.
func newCA(now time.Time, life time.Duration) (KeyPair, error) {
	template := &x509.Certificate{
		Subject:  pkix.Name{CommonName: fmt.Sprintf("cluster-manager-webhook@%d", now.Unix())},
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature,
		IsCA:     true, BasicConstraintsValid: true, MaxPathLen: 0, MaxPathLenZero: true,
	}
	return issue(template, pair{}, now, life)
}

// newServing makes a serving certificate for DNS names, signed by ca.
func newServing(ca pair, now time.Time, life time.Duration, dns []string) (KeyPair, error) {
	template := &x509.Certificate{
		Subject:  pkix.Name{CommonName: dns[0]},
		DNSNames: dns, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
	}
	return issue(template, ca, now, life)
}

// issue signs a certificate with a new key, by itself if there is no CA. It
// does not outlive its CA.
func issue(template *x509.Certificate, ca pair, now time.Time, life time.Duration) (KeyPair, error) {
	key, keyPEM, err := pemutil.NewKey()
	if err != nil {
		return KeyPair{}, err
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)); err != nil {
		return KeyPair{}, fmt.Errorf("serial number: %w", err)
	}
	template.NotBefore, template.NotAfter = now.Add(-backdate), now.Add(life)
	parent, signer := template, crypto.Signer(key)
	if ca.cert != nil {
		parent, signer = ca.cert, ca.key
		if template.NotAfter.After(ca.cert.NotAfter) {
			template.NotAfter = ca.cert.NotAfter
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return KeyPair{}, fmt.Errorf("sign the certificate of %s: %w", template.Subject.CommonName, err)
	}
	return KeyPair{Cert: pemutil.EncodeCertificate(der), Key: keyPEM}, nil
}

// bundle is a list of CAs, the newest first.
type bundle []*x509.Certificate

// parseBundle reads the CAs of a bundle; one that cannot be read is empty.
func parseBundle(data []byte) bundle {
	certs, err := pemutil.ParseCertificates(data)
	if err != nil {
		return nil
	}
	var b bundle
	for _, cert := range certs {
		b = b.with(cert)
	}
	return b
}

func (b bundle) has(ca *x509.Certificate) bool {
	return slices.ContainsFunc(b, ca.Equal)
}

// with adds a CA.
func (b bundle) with(ca *x509.Certificate) bundle {
	if b.has(ca) || !ca.IsCA {
		return b
	}
	out := append(slices.Clone(b), ca)
	slices.SortStableFunc(out, func(x, y *x509.Certificate) int { return y.NotBefore.Compare(x.NotBefore) })
	return out
}

func (b bundle) pem() []byte {
	var out bytes.Buffer
	for _, ca := range b {
		out.Write(pemutil.EncodeCertificate(ca.Raw))
	}
	return out.Bytes()
}

func (b bundle) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	for _, ca := range b {
		pool.AddCert(ca)
	}
	return pool
}
