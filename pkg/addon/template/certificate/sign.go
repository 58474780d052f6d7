package certificate

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/access"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

const (
	// lifetime is that of a certificate unless the request or the signer's is shorter.
	// See docs/reference/wire-contract.md#addon-templates.
	lifetime = 24 * time.Hour
	// leeway is how far a certificate is dated back, for clocks that are late.
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

// secretOf names the Secret with the key of a signer.
func (r *Reconciler) secretOf(signer *addonv1alpha1.CustomSignerRegistrationConfig) client.ObjectKey {
	return client.ObjectKey{Namespace: cmp.Or(signer.SigningCA.Namespace, r.Namespace), Name: signer.SigningCA.Name}
}

// granted returns an error, which names all that is missing, unless an administrator lets
// this add-on have this signer with this Secret: the permissions that the add-on manager has
// for signers and Secrets are those of all add-ons. See docs/adr/0020-grants-for-templates.md.
func (r *Reconciler) granted(ctx context.Context, addOn string, signer *addonv1alpha1.CustomSignerRegistrationConfig) error {
	secret := r.secretOf(signer)
	grant := access.Right{
		Verb: "sign", Resource: schema.GroupResource{Group: addonv1beta1.GroupName, Resource: names.ResourceCustomSigners},
		Namespace: secret.Namespace, Name: names.CustomSignerGrant(addOn, signer.SignerName, secret.Name),
	}
	missing, err := access.Missing(ctx, r.Client, []access.Right{grant})
	if err != nil || len(missing) == 0 {
		return err
	}
	others, err := r.lacks(ctx, signer.SignerName, secret)
	if err != nil {
		return err
	}
	missing = append(missing, others...)
	words := make([]string, len(missing))
	for i, right := range missing {
		words[i] = right.String()
	}
	return fmt.Errorf("the add-on may not use the signer with this Secret; let the ServiceAccount %s %s", names.HubAddOnManagerServiceAccount, strings.Join(words, ", and "))
}

// lacks returns what the add-on manager lacks to use a signer: the verbs that the API server
// asks for, by the name of the signer or of all of its domain, and to read the key.
func (r *Reconciler) lacks(ctx context.Context, signer string, secret client.ObjectKey) ([]access.Right, error) {
	domain, _, _ := strings.Cut(signer, "/")
	var missing []access.Right
	for _, verb := range []string{"approve", "sign"} {
		one := access.Right{Verb: verb, Resource: schema.GroupResource{Group: certificatesv1.GroupName, Resource: "signers"}, Name: signer}
		all := one
		all.Name = domain + "/*"
		lacking, err := access.Missing(ctx, r.Client, []access.Right{one, all})
		if err != nil {
			return nil, err
		}
		if len(lacking) > 1 {
			missing = append(missing, one)
		}
	}
	key, err := access.Missing(ctx, r.Client, []access.Right{{
		Verb: "get", Resource: schema.GroupResource{Resource: "secrets"}, Namespace: secret.Namespace, Name: secret.Name,
	}})
	return append(missing, key...), err
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
