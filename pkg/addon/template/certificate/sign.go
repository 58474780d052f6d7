package certificate

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// lifetime is the lifetime of a certificate unless the request's or the signer's is
	// shorter.
	// See docs/reference/wire-contract.md#addon-templates.
	lifetime = 24 * time.Hour
	// leeway is how far a certificate is backdated, for clocks that are late.
	leeway = 5 * time.Minute
)

// sign returns a certificate for a request that was vetted.
func sign(ca *tls.Certificate, request *x509.CertificateRequest, seconds *int32, now time.Time) ([]byte, error) {
	issuer := ca.Leaf
	if !issuer.IsCA {
		return nil, errors.New("the certificate of the signer is not one of a CA")
	}
	until := now.Add(lifetime)
	if seconds != nil {
		if asked := now.Add(time.Duration(*seconds) * time.Second); asked.Before(until) {
			until = asked
		}
	}
	if issuer.NotAfter.Before(until) {
		until = issuer.NotAfter
	}
	if !until.After(now) {
		return nil, fmt.Errorf("the certificate of the signer ended at %s; renew it", issuer.NotAfter.UTC().Format(time.RFC3339))
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: serial, Subject: request.Subject, DNSNames: request.DNSNames,
		NotBefore: now.Add(-leeway), NotAfter: until, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, issuer, request.PublicKey, ca.PrivateKey)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}

// authority reads the key of a signer.
func (r *Reconciler) authority(ctx context.Context, key client.ObjectKey) (*tls.Certificate, error) {
	var secret corev1.Secret
	if err := r.Live.Get(ctx, key, &secret); err != nil {
		return nil, fmt.Errorf("secret %s of the signer: %w", key, err)
	}
	pair, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return nil, fmt.Errorf("secret %s of the signer has no certificate and key that belong together", key)
	}
	return &pair, nil
}

func conditionOf(object *certificatesv1.CertificateSigningRequest, kind certificatesv1.RequestConditionType) bool {
	for _, c := range object.Status.Conditions {
		if c.Type == kind {
			return true
		}
	}
	return false
}
