package pemutil

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"

	"k8s.io/client-go/util/keyutil"
)

// PEM block types.
const (
	typeKey     = "PRIVATE KEY"
	typeCert    = "CERTIFICATE"
	typeRequest = "CERTIFICATE REQUEST"
)

// ErrNoPEM is the error for data without a valid PEM block of the wanted type.
var ErrNoPEM = errors.New("no valid PEM block of the wanted type")

// NewKey makes an ECDSA P-256 key and returns it with its PKCS#8 PEM form.
func NewKey() (*ecdsa.PrivateKey, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("generate key: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, fmt.Errorf("encode key: %w", err)
	}
	return key, pem.EncodeToMemory(&pem.Block{Type: typeKey, Bytes: der}), nil
}

// ParseKey reads the first PKCS#8, SEC 1 or PKCS#1 private key.
func ParseKey(data []byte) (crypto.Signer, error) {
	key, err := keyutil.ParsePrivateKeyPEM(data)
	if err != nil {
		return nil, fmt.Errorf("private key: %w", ErrNoPEM)
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("a %T cannot sign", key)
	}
	return signer, nil
}

// EncodeRequest returns the PEM form of a DER certificate request.
func EncodeRequest(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: typeRequest, Bytes: der})
}

// ParseRequest reads a PEM certificate request, which must be the only thing in
// data, and checks its self-signature.
func ParseRequest(data []byte) (*x509.CertificateRequest, error) {
	block, rest := pem.Decode(data)
	if block == nil || block.Type != typeRequest {
		return nil, fmt.Errorf("certificate request: %w", ErrNoPEM)
	}
	if len(rest) > 0 {
		return nil, errors.New("certificate request: unexpected data behind it")
	}
	req, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("certificate request: %w", err)
	}
	if err := req.CheckSignature(); err != nil {
		return nil, fmt.Errorf("certificate request: %w", err)
	}
	return req, nil
}

// EncodeCertificate returns the PEM form of a DER certificate.
func EncodeCertificate(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: typeCert, Bytes: der})
}

// ParseCertificates reads every certificate in data, in order. No certificate
// at all is ErrNoPEM.
func ParseCertificates(data []byte) ([]*x509.Certificate, error) {
	var certs []*x509.Certificate
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != typeCert {
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate: %w", err)
		}
		certs = append(certs, cert)
	}
	if len(certs) == 0 {
		return nil, fmt.Errorf("certificate: %w", ErrNoPEM)
	}
	return certs, nil
}

// KeyFingerprint returns the fingerprint of a public key for users to compare: "SHA256:" and the
// unpadded base64 of the SHA-256 of its PKIX form, as ssh prints keys.
func KeyFingerprint(pub crypto.PublicKey) (string, error) {
	der, err := x509.MarshalPKIXPublicKey(pub)
	if err != nil {
		return "", fmt.Errorf("fingerprint: %w", err)
	}
	sum := sha256.Sum256(der)
	return "SHA256:" + base64.RawStdEncoding.EncodeToString(sum[:]), nil
}
