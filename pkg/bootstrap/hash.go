package bootstrap

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pemutil"
)

const hashPrefix = "sha256:"

// CAHash is the pin of a certificate authority: "sha256:" and the hexadecimal
// SHA-256 of its public key's PKIX form, the form that kubeadm prints as well.
type CAHash string

// HashOf returns the pin of a certificate.
func HashOf(cert *x509.Certificate) CAHash {
	sum := sha256.Sum256(cert.RawSubjectPublicKeyInfo)
	return CAHash(hashPrefix + hex.EncodeToString(sum[:]))
}

// HashesOf returns the pins of all certificates in a PEM bundle, in order and
// without repetition.
func HashesOf(ca []byte) ([]CAHash, error) {
	certs, err := pemutil.ParseCertificates(ca)
	if err != nil {
		return nil, err
	}
	var hashes []CAHash
	for _, cert := range certs {
		if h := HashOf(cert); !slices.Contains(hashes, h) {
			hashes = append(hashes, h)
		}
	}
	return hashes, nil
}

// ParseCAHash reads a pin. Upper case digits are taken as well. Every error is
// an *Error of kind BadHash.
func ParseCAHash(s string) (CAHash, error) {
	digits, ok := strings.CutPrefix(strings.TrimSpace(s), hashPrefix)
	raw, err := hex.DecodeString(digits)
	if !ok || err != nil || len(raw) != sha256.Size {
		return "", &Error{
			Kind:    BadHash,
			Problem: fmt.Sprintf("%q is not a CA hash", s),
			Try:     "copy it from the join command: sha256: and 64 hexadecimal digits",
		}
	}
	return CAHash(hashPrefix + hex.EncodeToString(raw)), nil
}

// pinned returns the PEM form of those certificates that a pin names.
func pinned(pins []CAHash, candidates []*x509.Certificate) []byte {
	var out bytes.Buffer
	var seen []CAHash
	for _, cert := range candidates {
		h := HashOf(cert)
		if slices.Contains(pins, h) && !slices.Contains(seen, h) {
			seen = append(seen, h)
			out.Write(pemutil.EncodeCertificate(cert.Raw))
		}
	}
	return out.Bytes()
}
