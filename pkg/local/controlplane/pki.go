package controlplane

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/atomicfile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pemutil"
)

const (
	caLife   = 10 * 365 * 24 * time.Hour
	leafLife = 365 * 24 * time.Hour
	// clockSkew is how far certificates are dated back.
	clockSkew = 5 * time.Minute
)

// Authority is the certificate authority of one cluster: the API server trusts the
// client certificates that it signs.
type Authority struct {
	cert *x509.Certificate
	key  crypto.Signer
	pem  []byte
}

// PEM is the certificate of the authority.
func (a *Authority) PEM() []byte { return a.pem }

// AuthorityFile is the certificate of an authority in its directory.
const AuthorityFile = "ca.crt"

// OpenAuthority reads the authority in dir, or makes one there.
func OpenAuthority(dir string, now time.Time) (*Authority, error) {
	certFile, keyFile := filepath.Join(dir, AuthorityFile), filepath.Join(dir, "ca.key")
	certPEM, err := os.ReadFile(certFile)
	if errors.Is(err, fs.ErrNotExist) {
		return newAuthority(certFile, keyFile, now)
	}
	if err != nil {
		return nil, err
	}
	keyPEM, err := os.ReadFile(keyFile)
	if err != nil {
		return nil, err
	}
	certs, err := pemutil.ParseCertificates(certPEM)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", certFile, err)
	}
	key, err := pemutil.ParseKey(keyPEM)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", keyFile, err)
	}
	return &Authority{cert: certs[0], key: key, pem: certPEM}, nil
}

func newAuthority(certFile, keyFile string, now time.Time) (*Authority, error) {
	key, keyPEM, err := pemutil.NewKey()
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "kubernetes"},
		NotBefore:             now.Add(-clockSkew),
		NotAfter:              now.Add(caLife),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("certificate authority: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("certificate authority: %w", err)
	}
	a := &Authority{cert: cert, key: key, pem: pemutil.EncodeCertificate(der)}
	// The certificate is written last: it completes the pair.
	return a, errors.Join(atomicfile.Write(keyFile, keyPEM), atomicfile.Write(certFile, a.pem))
}

// Client makes a key and a client certificate for a user, both PEM.
func (a *Authority) Client(now time.Time, user string, groups ...string) (certPEM, keyPEM []byte, err error) {
	return a.sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: groups},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, now)
}

// Server makes a key and a serving certificate for names and addresses, both PEM.
func (a *Authority) Server(now time.Time, name string, dns []string, ips []net.IP) (certPEM, keyPEM []byte, err error) {
	return a.sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: name},
		DNSNames:    dns,
		IPAddresses: ips,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, now)
}

func (a *Authority) sign(template *x509.Certificate, now time.Time) (certPEM, keyPEM []byte, err error) {
	key, keyPEM, err := pemutil.NewKey()
	if err != nil {
		return nil, nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, nil, fmt.Errorf("serial number: %w", err)
	}
	template.SerialNumber = serial
	template.NotBefore, template.NotAfter = now.Add(-clockSkew), now.Add(leafLife)
	template.KeyUsage = x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return nil, nil, fmt.Errorf("certificate for %s: %w", template.Subject.CommonName, err)
	}
	return pemutil.EncodeCertificate(der), keyPEM, nil
}

// openTokenKey makes sa.key and sa.pub in dir, the key that signs service
// account tokens, unless they exist. It is RSA, as kubeadm's is: verifiers that
// know only RS256 must work here as they do elsewhere.
func openTokenKey(dir string) error {
	public := filepath.Join(dir, "sa.pub")
	if _, err := os.Stat(public); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return fmt.Errorf("service account key: %w", err)
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return fmt.Errorf("service account key: %w", err)
	}
	private := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	return errors.Join(
		atomicfile.Write(filepath.Join(dir, "sa.key"), private),
		atomicfile.Write(public, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})),
	)
}
