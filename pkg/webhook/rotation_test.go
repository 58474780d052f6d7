package webhook_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pause"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pemutil"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/webhook/conversion"
)

// brisk are rules by which certificates live for less than a minute. One that is
// dated back is replaced at half of the time in which it can be used. If the CA
// is new at that moment, settle passes first: a busy machine has 10 seconds left
// to write, to load and to serve the new certificate.
const (
	caLife      = 48 * time.Second
	servingLife = 36 * time.Second
	settle      = 8 * time.Second
	// prompt is what callers are held to: certificates have whole seconds.
	prompt = time.Second
)

// TestRotationUnderLoad uses v1alpha1 all the time while the CA and the serving
// certificate are replaced several times. No request may fail, and nobody who
// trusts what the CRDs said a moment ago may be refused.
func TestRotationUnderLoad(t *testing.T) {
	t.Parallel()
	brisk := rules()
	brisk.CALife, brisk.ServingLife, brisk.Settle = caLife, servingLife, settle
	h := newHub(t, brisk)
	h.runWebhook(t)
	h.create(t, addOn(beta, "read"))

	ctx, stop := context.WithCancel(t.Context())
	var load sync.WaitGroup
	defer load.Wait()
	defer stop()
	requests := 0
	load.Go(func() {
		for ; pause.For(ctx, clock.RealClock{}, tick); requests++ {
			if err := h.admin.Get(ctx, client.ObjectKey{Namespace: "default", Name: "read"}, addOn(alpha, "read")); err != nil && ctx.Err() == nil {
				t.Errorf("request %d: %v", requests, err)
			}
		}
	})
	load.Go(func() {
		for i := 0; pause.For(ctx, clock.RealClock{}, 3*tick); i++ {
			obj := addOn(alpha, "made-"+strconv.Itoa(i))
			if err := h.admin.Create(ctx, obj); err != nil && ctx.Err() == nil {
				t.Errorf("create %d: %v", i, err)
			}
		}
	})
	load.Go(func() { h.handshakes(ctx, t) })
	rotations := map[string]map[string]bool{names.SignerSecret: {}, names.AddOnWebhookServingCertSecret: {}}
	eventually(t, func(ctx context.Context) string {
		for name, seen := range rotations {
			cert, err := h.certificate(ctx, name)
			if err != nil {
				return err.Error()
			}
			seen[cert.SerialNumber.String()] = true
		}
		if len(rotations[names.SignerSecret]) < 3 || len(rotations[names.AddOnWebhookServingCertSecret]) < 4 {
			return fmt.Sprintf("CAs %d, serving certificates %d", len(rotations[names.SignerSecret]), len(rotations[names.AddOnWebhookServingCertSecret]))
		}
		return ""
	})
	stop()
	load.Wait()
	t.Logf("%d reads in v1alpha1", requests)
}

// TestRolloutUnderLoad uses v1alpha1 all the time while one pod takes the place
// of another.
func TestRolloutUnderLoad(t *testing.T) {
	t.Parallel()
	h := newHub(t, rules())
	stopOld := h.runWebhook(t)
	h.create(t, addOn(beta, "read"))
	ctx, stop := context.WithCancel(t.Context())
	var load sync.WaitGroup
	defer load.Wait()
	defer stop()
	var requests atomic.Int64
	for range 4 {
		load.Go(func() {
			for ; pause.For(ctx, clock.RealClock{}, tick/10); requests.Add(1) {
				if err := h.admin.Get(ctx, client.ObjectKey{Namespace: "default", Name: "read"}, addOn(alpha, "read")); err != nil && ctx.Err() == nil {
					t.Errorf("request %d: %v", requests.Load(), err)
				}
			}
		})
	}
	for range 2 {
		h.ip = freeAddress(t)
		stopNew := h.runWebhook(t) // Ready: the Service leads to it.
		stopOld()                  // Terminated: it drains.
		stopOld = stopNew
	}
	served := requests.Load()
	eventually(t, func(context.Context) string {
		if requests.Load() < served+100 {
			return "the last pod has not served enough"
		}
		return ""
	})
}

// handshakes connects, over and over, as somebody who has learned of the CAs a
// moment ago.
func (h *hub) handshakes(ctx context.Context, t *testing.T) {
	t.Helper()
	now := clock.RealClock{}.Now
	for pause.For(ctx, clock.RealClock{}, tick) {
		learned := now()
		bundle, err := h.trusted(ctx)
		if err != nil && ctx.Err() == nil {
			t.Error(err)
			continue
		}
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(bundle)
		if !pause.For(ctx, clock.RealClock{}, prompt/2) {
			return
		}
		dialer := tls.Dialer{Config: &tls.Config{
			RootCAs: pool, ServerName: names.AddOnWebhookService + "." + names.HubNamespace + ".svc", MinVersion: tls.VersionTLS12,
		}}
		connection, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(h.ip, strconv.Itoa(names.AddOnWebhookPort)))
		if err == nil {
			_ = connection.Close()
			continue
		}
		// Whoever is slower than that is not promised anything.
		if ctx.Err() == nil && now().Sub(learned) < prompt {
			t.Errorf("handshake: %v", err)
		}
	}
}

func (h *hub) certificate(ctx context.Context, secret string) (*x509.Certificate, error) {
	var s corev1.Secret
	if err := h.admin.Get(ctx, client.ObjectKey{Namespace: names.HubNamespace, Name: secret}, &s); err != nil {
		return nil, err
	}
	certs, err := pemutil.ParseCertificates(s.Data[corev1.TLSCertKey])
	if err != nil {
		return nil, err
	}
	return certs[0], nil
}

// TestDamageIsRepaired takes away and spoils what the issuer made, while the
// webhook serves.
func TestDamageIsRepaired(t *testing.T) {
	t.Parallel()
	whole := t // What a step starts ends with it.
	h := newHub(t, rules())
	h.runWebhook(t)
	h.create(t, addOn(alpha, "a"))
	key := func(name string) client.ObjectKey { return client.ObjectKey{Namespace: names.HubNamespace, Name: name} }
	remove := func(t *testing.T, obj client.Object, name string) {
		t.Helper()
		obj.SetNamespace(names.HubNamespace)
		obj.SetName(name)
		if err := h.admin.Delete(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	before := func(t *testing.T, name string) string {
		t.Helper()
		cert, err := h.certificate(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		return cert.SerialNumber.String()
	}
	renewed := func(t *testing.T, name, serial string) {
		t.Helper()
		eventually(t, func(ctx context.Context) string {
			cert, err := h.certificate(ctx, name)
			if err != nil {
				return err.Error()
			}
			if cert.SerialNumber.String() == serial {
				return name + " is still the old one"
			}
			return ""
		})
		h.read(t, alpha, "a")
	}
	inOrder(t,
		step{"nothing is written without need", func(t *testing.T) {
			t.Helper()
			versions := func() string {
				var signer, serving corev1.Secret
				var bundle corev1.ConfigMap
				for name, obj := range map[string]client.Object{
					names.SignerSecret: &signer, names.AddOnWebhookServingCertSecret: &serving, names.CABundleConfigMap: &bundle,
				} {
					if err := h.admin.Get(t.Context(), key(name), obj); err != nil {
						t.Fatal(err)
					}
				}
				return signer.ResourceVersion + " " + serving.ResourceVersion + " " + bundle.ResourceVersion
			}
			written := versions()
			h.stopOperator()
			h.runOperator(whole, rules())
			// When the operator has repaired this, it and the issuer have looked.
			crd := &apiextensionsv1.CustomResourceDefinition{}
			crd.Name = conversion.CRDs()[0]
			spoil := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"conversion":{"strategy":"None","webhook":null}}}`))
			if err := h.admin.Patch(t.Context(), crd, spoil); err != nil {
				t.Fatal(err)
			}
			eventually(t, func(ctx context.Context) string {
				if err := h.admin.Get(ctx, client.ObjectKeyFromObject(crd), crd); err != nil {
					return err.Error()
				}
				if crd.Spec.Conversion.Webhook == nil || len(crd.Spec.Conversion.Webhook.ClientConfig.CABundle) == 0 {
					return "the CRD converts nothing"
				}
				return ""
			})
			if got := versions(); got != written {
				t.Errorf("written again: %s, before %s", got, written)
			}
		}},
		step{"the serving certificate is deleted", func(t *testing.T) {
			t.Helper()
			serial := before(t, names.AddOnWebhookServingCertSecret)
			remove(t, &corev1.Secret{}, names.AddOnWebhookServingCertSecret)
			renewed(t, names.AddOnWebhookServingCertSecret, serial)
		}},
		step{"the serving certificate is spoiled", func(t *testing.T) {
			t.Helper()
			serial := before(t, names.AddOnWebhookServingCertSecret)
			var secret corev1.Secret
			if err := h.admin.Get(t.Context(), key(names.AddOnWebhookServingCertSecret), &secret); err != nil {
				t.Fatal(err)
			}
			secret.Data[corev1.TLSPrivateKeyKey] = []byte("spoiled")
			if err := h.admin.Update(t.Context(), &secret); err != nil {
				t.Fatal(err)
			}
			renewed(t, names.AddOnWebhookServingCertSecret, serial)
		}},
		step{"the bundle is deleted", func(t *testing.T) {
			t.Helper()
			var published corev1.ConfigMap
			if err := h.admin.Get(t.Context(), key(names.CABundleConfigMap), &published); err != nil {
				t.Fatal(err)
			}
			remove(t, &corev1.ConfigMap{}, names.CABundleConfigMap)
			eventually(t, func(ctx context.Context) string {
				var again corev1.ConfigMap
				if err := h.admin.Get(ctx, key(names.CABundleConfigMap), &again); err != nil {
					return err.Error()
				}
				if again.Data[names.KeyCABundle] != published.Data[names.KeyCABundle] {
					return "another bundle"
				}
				return ""
			})
			h.read(t, alpha, "a")
		}},
		step{"the CA is deleted", func(t *testing.T) {
			t.Helper()
			serial := before(t, names.SignerSecret)
			remove(t, &corev1.Secret{}, names.SignerSecret)
			renewed(t, names.SignerSecret, serial)
			h.expectTrusted(t, 2)
			h.read(t, alpha, "a")
		}},
		step{"the old CA is distrusted", func(t *testing.T) {
			t.Helper()
			serial := before(t, names.AddOnWebhookServingCertSecret)
			remove(t, &corev1.Secret{}, names.AddOnWebhookServingCertSecret)
			renewed(t, names.AddOnWebhookServingCertSecret, serial)
			var published corev1.ConfigMap
			if err := h.admin.Get(t.Context(), key(names.CABundleConfigMap), &published); err != nil {
				t.Fatal(err)
			}
			newest, _, _ := strings.Cut(published.Data[names.KeyCABundle], "-----END CERTIFICATE-----")
			published.Data[names.KeyCABundle] = newest + "-----END CERTIFICATE-----\n"
			if err := h.admin.Update(t.Context(), &published); err != nil {
				t.Fatal(err)
			}
			h.expectTrusted(t, 1)
			h.read(t, alpha, "a")
		}},
	)
}

// expectTrusted waits until a CRD trusts a number of CAs.
func (h *hub) expectTrusted(t *testing.T, want int) {
	t.Helper()
	eventually(t, func(ctx context.Context) string {
		bundle, err := h.trusted(ctx)
		if err != nil {
			return err.Error()
		}
		certs, err := pemutil.ParseCertificates(bundle)
		if err != nil || len(certs) != want {
			return fmt.Sprintf("the CRD trusts %d CAs: %v", len(certs), err)
		}
		return ""
	})
}
