package servingcert_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/scheme"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/servingcert"
)

func TestHolder(t *testing.T) {
	t.Parallel()
	w := settled(t)
	clk := clocktesting.NewFakePassiveClock(w.now)
	holder := &servingcert.Holder{Clock: clk, Log: logr.Discard()}
	informers := &informertest.FakeInformers{Scheme: scheme.New()}
	if err := holder.Watch(t.Context(), following{informers}); err != nil {
		t.Fatal(err)
	}
	informer, err := informers.FakeInformerFor(t.Context(), &corev1.Secret{})
	if err != nil {
		t.Fatal(err)
	}
	expect := func(want servingcert.KeyPair, ready bool) {
		t.Helper()
		cert, err := holder.Certificate(nil)
		if want.Cert == nil {
			if err == nil {
				t.Error("a certificate out of nowhere")
			}
		} else if err != nil || !cert.Leaf.Equal(certificate(t, want.Cert)) {
			t.Errorf("another certificate, %v", err)
		}
		expiry := 0.0
		if want.Cert != nil {
			expiry = float64(certificate(t, want.Cert).NotAfter.Unix())
		}
		if got := measured(t, holder.NewMetric()); got != expiry {
			t.Errorf("the metric says %v, want %v", got, expiry)
		}
		if err := holder.Check(nil); (err == nil) != ready {
			t.Errorf("ready: %v", err)
		}
	}
	expect(servingcert.KeyPair{}, false)
	add(informer, "another-secret", w.Serving)
	expect(servingcert.KeyPair{}, false)
	add(informer, names.AddOnWebhookServingCertSecret, w.Serving)
	expect(w.Serving, true)
	add(informer, names.AddOnWebhookServingCertSecret, servingcert.KeyPair{Cert: w.Serving.Cert, Key: []byte("spoiled")})
	expect(w.Serving, true)
	clk.SetTime(certificate(t, w.Serving.Cert).NotAfter.Add(1))
	expect(w.Serving, false)
	w.now = clk.Now()
	w.pass(t)
	add(informer, names.AddOnWebhookServingCertSecret, w.Serving)
	expect(w.Serving, true)
}

func measured(t *testing.T, metric prometheus.Collector) float64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(metric)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	return families[0].GetMetric()[0].GetGauge().GetValue()
}

func add(informer *controllertest.FakeInformer, name string, content servingcert.KeyPair) {
	secret := &corev1.Secret{Data: map[string][]byte{corev1.TLSCertKey: content.Cert, corev1.TLSPrivateKeyKey: content.Key}}
	secret.Name = name
	informer.Add(secret)
}

// following is a cache whose informers are fakes.
type following struct{ *informertest.FakeInformers }

func (f following) GetInformer(ctx context.Context, obj client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	return f.FakeInformerFor(ctx, obj)
}

// TestServerNotReady asks before the server has begun.
func TestServerNotReady(t *testing.T) {
	t.Parallel()
	server := &servingcert.Server{Handler: http.NotFoundHandler(), Holder: &servingcert.Holder{}}
	if err := server.Check(nil); err == nil {
		t.Error("ready before it listens")
	}
	if server.NeedLeaderElection() {
		t.Error("only one replica serves")
	}
}
