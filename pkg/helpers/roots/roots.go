package roots

import (
	"cmp"
	"crypto/x509"
	"fmt"
	"os"
	"slices"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// Fallback has crypto/x509 verify by the roots of Mozilla where the system has none. It may
// be called once. Reading the roots takes 3 ms, so it does without them where the system
// has a bundle in a file: crypto/x509 reads that one (https://pkg.go.dev/crypto/x509#SystemCertPool).
func Fallback() error {
	if systemHasRoots(os.Getenv, os.Stat) {
		return nil
	}
	pool, err := public()
	if err != nil {
		return err
	}
	x509.SetFallbackRoots(pool)
	return nil
}

// bundles are the files in which distributions keep their roots.
func bundles() []string {
	return []string{
		"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
		"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/ssl/cert.pem",
	}
}

// systemHasRoots reports whether the system is known to have roots. With a variable, the
// user chooses where they are.
func systemHasRoots(getenv func(string) string, stat func(string) (os.FileInfo, error)) bool {
	if cmp.Or(getenv("SSL_CERT_FILE"), getenv("SSL_CERT_DIR")) != "" {
		return false
	}
	return slices.ContainsFunc(bundles(), func(file string) bool {
		info, err := stat(file)
		return err == nil && info.Mode().IsRegular() && info.Size() > 0
	})
}

// public returns the roots of Mozilla.
func public() (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	for root := range bundle.Roots() {
		cert, err := x509.ParseCertificate(root.Certificate)
		switch {
		case err != nil:
			return nil, fmt.Errorf("public root: %w", err)
		case root.Constraint == nil:
			pool.AddCert(cert)
		default:
			pool.AddCertWithConstraint(cert, root.Constraint)
		}
	}
	return pool, nil
}
