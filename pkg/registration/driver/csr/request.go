package csr

import (
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"fmt"
	"strconv"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pemutil"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// Keys of the pending data. The key of the private key is the one it will have
// in the kubeconfig Secret.
const (
	// keyRequest is the name of the CSR, for administrators who read the Secret.
	keyRequest = "csr-name"
	// keyDenials counts the requests that were refused before this one.
	keyDenials = "refusals"
)

// request is a certificate that is being asked for.
type request struct {
	key         crypto.Signer
	keyPEM      []byte
	name        string
	fingerprint string
	denials     int
}

func newRequest(w *wanted, denials int) (*request, error) {
	key, keyPEM, err := pemutil.NewKey()
	if err != nil {
		return nil, err
	}
	return requestFor(w, key, keyPEM, denials)
}

func requestFor(w *wanted, key crypto.Signer, keyPEM []byte, denials int) (*request, error) {
	fingerprint, err := pemutil.KeyFingerprint(key.Public())
	if err != nil {
		return nil, err
	}
	name, err := w.requestName(key.Public())
	if err != nil {
		return nil, err
	}
	return &request{key: key, keyPEM: keyPEM, name: name, fingerprint: fingerprint, denials: denials}, nil
}

// parsePending reads what request.data wrote. It is an error when the data are
// not of what is wanted: such a request would have another name.
func parsePending(w *wanted, pending driver.Data) (*request, error) {
	keyPEM := pending[names.KeyTLSKey]
	key, err := pemutil.ParseKey(keyPEM)
	if err != nil {
		return nil, err
	}
	denials, err := strconv.Atoi(string(pending[keyDenials]))
	if err != nil || denials < 0 {
		denials = 0
	}
	req, err := requestFor(w, key, keyPEM, denials)
	if err != nil {
		return nil, err
	}
	if req.name != string(pending[keyRequest]) {
		return nil, fmt.Errorf("the pending request is not one of %s", w.user)
	}
	return req, nil
}

func (r *request) data() driver.Data {
	return driver.Data{
		names.KeyTLSKey: r.keyPEM,
		keyRequest:      []byte(r.name),
		keyDenials:      []byte(strconv.Itoa(r.denials)),
	}
}

// encode signs the certificate request.
func (r *request) encode(w *wanted) ([]byte, error) {
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: w.subject(), DNSNames: w.dnsNames}, r.key)
	if err != nil {
		return nil, fmt.Errorf("sign certificate request: %w", err)
	}
	return pemutil.EncodeRequest(der), nil
}

// owns reports whether a CSR's request was signed with r's key.
func (r *request) owns(pem []byte) bool {
	parsed, err := pemutil.ParseRequest(pem)
	if err != nil {
		return false
	}
	return samePublicKey(parsed.PublicKey, r.key.Public())
}

func samePublicKey(a, b crypto.PublicKey) bool {
	eq, ok := a.(interface{ Equal(crypto.PublicKey) bool })
	return ok && eq.Equal(b)
}
