package pemutil_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"strings"
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pemutil"
)

func TestKeys(t *testing.T) {
	t.Parallel()
	own, ownPEM, err := pemutil.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	ec, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ecDER, err := x509.MarshalECPrivateKey(ec)
	if err != nil {
		t.Fatal(err)
	}
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name string
		data []byte
		want crypto.PublicKey
	}{
		{"PKCS 8", ownPEM, own.Public()},
		{"SEC 1", pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: ecDER}), ec.Public()},
		{"PKCS 1", pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(rsaKey)}), rsaKey.Public()},
		{"behind a certificate", append(pemutil.EncodeCertificate([]byte("other")), ownPEM...), own.Public()},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			key, err := pemutil.ParseKey(tc.data)
			if err != nil {
				t.Fatal(err)
			}
			got, _ := pemutil.KeyFingerprint(key.Public())
			want, err := pemutil.KeyFingerprint(tc.want)
			if err != nil || got != want || !strings.HasPrefix(got, "SHA256:") {
				t.Errorf("got %s, want %s, %v", got, want, err)
			}
		})
	}
}

// TestNoKey: what is no key is reported without a part of it.
func TestNoKey(t *testing.T) {
	t.Parallel()
	broken := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("secret")})
	for _, data := range [][]byte{nil, []byte("secret"), broken, pemutil.EncodeCertificate([]byte("secret"))} {
		if _, err := pemutil.ParseKey(data); !errors.Is(err, pemutil.ErrNoPEM) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: got %v", data, err)
		}
	}
}
