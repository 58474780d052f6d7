package addon_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// setRegistrations replaces the registrations, keeping what was declared for
// those that stay.
func setRegistrations(registrations ...addonv1beta1.RegistrationConfig) func(*addonv1beta1.ManagedClusterAddOnStatus) {
	key := func(r addonv1beta1.RegistrationConfig) string {
		if r.CustomSigner != nil {
			return r.CustomSigner.SignerName
		}
		return string(r.Type)
	}
	return func(s *addonv1beta1.ManagedClusterAddOnStatus) {
		before := map[string]addonv1beta1.RegistrationConfig{}
		for _, r := range s.Registrations {
			before[key(r)] = r
		}
		s.Registrations = nil
		for _, r := range registrations {
			if old, ok := before[key(r)]; ok {
				r = old
			}
			s.Registrations = append(s.Registrations, r)
		}
	}
}

// awaitSecret waits for a Secret that is as wanted.
func (f *fleet) awaitSecret(t *testing.T, name string, wanted func(map[string][]byte) bool) *corev1.Secret {
	t.Helper()
	var secret *corev1.Secret
	eventually(t, "Secret "+name, func() error {
		if secret = f.secret(t, name); secret == nil || !wanted(secret.Data) {
			return errors.New("the Secret is not as wanted")
		}
		return nil
	})
	return secret
}

// noPending waits until nothing is pending.
func (f *fleet) noPending(t *testing.T) {
	t.Helper()
	eventually(t, "nothing to be pending", func() error {
		var list corev1.SecretList
		if err := f.admin.List(t.Context(), &list, client.InNamespace(f.namespace)); err != nil {
			return err
		}
		for i := range list.Items {
			if target, ok := list.Items[i].Annotations[names.AnnotationCredentialPending]; ok {
				return fmt.Errorf("the request for %s is pending", target)
			}
		}
		return nil
	})
}

// decide puts a condition on the add-on's first request.
func (f *fleet) decide(t *testing.T, name string, kind certificatesv1.RequestConditionType) {
	t.Helper()
	clients := kubernetes.NewForConfigOrDie(plane.Config(t))
	eventually(t, "a request", func() error {
		requests := f.requests(t, name)
		if len(requests) == 0 {
			return errors.New("there is none")
		}
		c := &requests[0]
		c.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: kind, Status: corev1.ConditionTrue, Reason: "Test", Message: "no", LastUpdateTime: metav1.Now()}}
		_, err := clients.CertificatesV1().CertificateSigningRequests().UpdateApproval(t.Context(), c.Name, c, metav1.UpdateOptions{})
		return err
	})
}

// sign signs a request as an add-on's own signer.
func (f *fleet) sign(t *testing.T, c certificatesv1.CertificateSigningRequest) {
	t.Helper()
	block, _ := pem.Decode(c.Spec.Request)
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ca := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "signer"}, IsCA: true, NotBefore: now().Add(-time.Hour), NotAfter: now().Add(time.Hour), BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: request.Subject, DNSNames: request.DNSNames, NotBefore: now().Add(-5 * time.Minute), NotAfter: now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, ca, request.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	c.Status.Certificate = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if _, err := kubernetes.NewForConfigOrDie(plane.Config(t)).CertificatesV1().CertificateSigningRequests().UpdateStatus(t.Context(), &c, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// series counts the time series of a metric.
func (p *process) series(t *testing.T, name string) int {
	t.Helper()
	families, err := p.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == name {
			return len(family.GetMetric())
		}
	}
	return 0
}

// dieAfter makes a process end with its nth write: nothing that it tries
// afterwards happens. died is closed when it tries.
func dieAfter(writes int) (dead func(*http.Request) bool, died <-chan struct{}) {
	var seen atomic.Int32
	over := make(chan struct{})
	end := sync.OnceFunc(func() { close(over) })
	return func(r *http.Request) bool {
		late := int(seen.Load()) >= writes
		if r.Method != http.MethodGet && !strings.Contains(r.URL.Path, "/events") {
			late = int(seen.Add(1)) > writes
		}
		if late {
			end()
		}
		return late
	}, over
}

// awaitDeath waits until a process can do no more, or has nothing more to do.
func (p *process) awaitDeath(t *testing.T, f *fleet, died <-chan struct{}) {
	t.Helper()
	eventually(t, "the agent to die", func() error {
		select {
		case <-died:
			return nil
		default:
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		return p.observed.Idle(ctx, f.admin, soon)
	})
}

// withCertificate registers an add-on by certificate and waits until it has one.
func (f *fleet) withCertificate(t *testing.T, name string) *corev1.Secret {
	t.Helper()
	f.register(t, name)
	f.approve(t, name)
	f.condition(t, name, names.ConditionCertificateRotated, metav1.ConditionTrue, names.ReasonCertificateUpdated)
	f.condition(t, name, addonv1beta1.ManagedClusterAddOnConditionAvailable, metav1.ConditionUnknown, addonv1beta1.AddonAvailableReasonLeaseLeaseNotFound)
	return f.secret(t, names.AddOnHubKubeconfigSecret(name))
}

// peek returns what was written without forgetting it.
func (f *fleet) peek() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.counts)
}

// addonStatus is short for what the hub writes.
type addonStatus = addonv1beta1.ManagedClusterAddOnStatus
