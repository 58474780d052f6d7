package servingcert

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// Holder stores the serving certificate of a process, which it reads from the Secret.
// When the Secret is deleted or damaged, the certificate stays.
type Holder struct {
	// Clock is the clock for checking the expiry.
	Clock clock.PassiveClock
	// Log records every new certificate.
	Log logr.Logger

	current atomic.Pointer[tls.Certificate]
}

// CacheOptions limit the cache to the one Secret that Watch needs.
func CacheOptions(namespace string) cache.Options {
	return cache.Options{ByObject: map[client.Object]cache.ByObject{
		&corev1.Secret{}: {Namespaces: map[string]cache.Config{namespace: {
			FieldSelector: fields.OneTermEqualSelector("metadata.name", names.AddOnWebhookServingCertSecret),
		}}},
	}}
}

// NewMetric returns a metric of the expiry of the certificate, in seconds since the
// epoch; 0 while there is none.
func (h *Holder) NewMetric() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "ocm_webhook_certificate_expiry_seconds", Help: "When the serving certificate expires, in seconds since the epoch.",
	}, func() float64 {
		cert := h.current.Load()
		if cert == nil {
			return 0
		}
		return float64(cert.Leaf.NotAfter.Unix())
	})
}

// Watch follows the Secret in a cache that has CacheOptions.
func (h *Holder) Watch(ctx context.Context, informers cache.Cache) error {
	informer, err := informers.GetInformer(ctx, &corev1.Secret{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watch the serving certificate: %w", err)
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { h.take(obj) },
		UpdateFunc: func(_, obj any) { h.take(obj) },
	})
	if err != nil {
		return fmt.Errorf("watch the serving certificate: %w", err)
	}
	return nil
}

func (h *Holder) take(obj any) {
	secret, ok := obj.(*corev1.Secret)
	if !ok || secret.Name != names.AddOnWebhookServingCertSecret {
		return
	}
	cert, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		h.Log.Error(err, "Cannot use the serving certificate; continuing with the previous one", "secret", secret.Name)
		return
	}
	if before := h.current.Swap(&cert); before == nil || !before.Leaf.Equal(cert.Leaf) {
		h.Log.Info("Serving with a new certificate", "issuer", cert.Leaf.Issuer.CommonName, "notAfter", cert.Leaf.NotAfter)
	}
}

// errNoCertificate is the error before the first certificate is issued.
var errNoCertificate = errors.New("there is no serving certificate yet: the operator issues it into the Secret " + names.AddOnWebhookServingCertSecret)

// Certificate is the GetCertificate of a server's TLS configuration.
func (h *Holder) Certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	cert := h.current.Load()
	if cert == nil {
		return nil, errNoCertificate
	}
	return cert, nil
}

// Check is a readiness check: clients would reject an expired certificate.
func (h *Holder) Check(*http.Request) error {
	cert, err := h.Certificate(nil)
	if err != nil {
		return err
	}
	if now := h.Clock.Now(); now.After(cert.Leaf.NotAfter) {
		return fmt.Errorf("the serving certificate expired at %s", cert.Leaf.NotAfter.UTC())
	}
	return nil
}
