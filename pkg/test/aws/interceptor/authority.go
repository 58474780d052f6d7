package interceptor

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"sync"
	"time"
)

// life is far longer than any test, and moved clocks stay within it.
const life = 10 * 365 * 24 * time.Hour

// authority is a CA that makes a certificate for any host.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey

	mu     sync.Mutex
	serial int64
	hosts  map[string]*tls.Certificate
}

func newAuthority(now time.Time) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	a := &authority{key: key, serial: 1, hosts: map[string]*tls.Certificate{}}
	a.certificate, err = a.sign(&x509.Certificate{
		Subject:               pkix.Name{CommonName: "AWS emulator CA"},
		SerialNumber:          big.NewInt(a.serial),
		NotBefore:             now.Add(-life),
		NotAfter:              now.Add(life),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign,
	}, key)
	return a, err
}

// sign signs template for key, with itself while there is no CA.
func (a *authority) sign(template *x509.Certificate, key *ecdsa.PrivateKey) (*x509.Certificate, error) {
	parent := a.certificate
	if parent == nil {
		parent = template
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, a.key)
	if err != nil {
		return nil, fmt.Errorf("certificate of the interceptor: %w", err)
	}
	return x509.ParseCertificate(der)
}

func (a *authority) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw})
}

// forHost is the certificate of a host, made once.
func (a *authority) forHost(host string) (*tls.Certificate, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c := a.hosts[host]; c != nil {
		return c, nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	a.serial++
	leaf, err := a.sign(&x509.Certificate{
		Subject:      pkix.Name{CommonName: host},
		DNSNames:     []string{host},
		SerialNumber: big.NewInt(a.serial),
		NotBefore:    a.certificate.NotBefore,
		NotAfter:     a.certificate.NotAfter,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, key)
	if err != nil {
		return nil, err
	}
	a.hosts[host] = &tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: key}
	return a.hosts[host], nil
}
