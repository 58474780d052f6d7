package addon_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/kubeconfig"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/csr"
)

func TestCertificates(t *testing.T) {
	t.Parallel()
	f := newFleet(t, driver.CSR)
	p := f.start(t)
	f.register(t, "one", kubeClient(), customSigner("example.com/first"), customSigner("example.com/second"), customSigner("example.com/first"))
	f.subject(t, "one", driver.CSR)
	waiting := f.condition(t, "one", names.ConditionCertificateRotated, metav1.ConditionFalse, csr.ReasonRequested)
	t.Log(waiting.Message)
	eventually(t, "three requests", func() error {
		if n := len(f.requests(t, "one")); n != 3 {
			return fmt.Errorf("%d requests", n)
		}
		return nil
	})
	f.approve(t, "one")
	secret := f.awaitSecret(t, names.AddOnHubKubeconfigSecret("one"), func(map[string][]byte) bool { return true })
	if keys := slices.Sorted(maps.Keys(secret.Data)); !slices.Equal(keys, []string{"cluster-name", "kubeconfig", "tls.crt", "tls.key"}) {
		t.Errorf("the Secret has %v", keys)
	}
	if hub, err := kubeconfig.ParseHub(secret.Data["kubeconfig"]); err != nil || hub.User.ClientCertificate != "tls.crt" || hub.User.ClientKey != "tls.key" {
		t.Errorf("kubeconfig %+v, %v", hub, err)
	}
	who := &authenticationv1.SelfSubjectReview{}
	config := &rest.Config{Host: plane.URL, TLSClientConfig: rest.TLSClientConfig{CAData: plane.CAData, CertData: secret.Data["tls.crt"], KeyData: secret.Data["tls.key"]}}
	if err := plane.ClientFor(t, config).Create(t.Context(), who); err != nil || who.Status.UserInfo.Username != names.AddOnUser(f.cluster, "one", "one") {
		t.Errorf("the hub takes the certificate for %s, %v", who.Status.UserInfo.Username, err)
	}
	// The add-on's own hub side signs for its signers.
	for _, c := range f.requests(t, "one") {
		if c.Spec.SignerName != certificatesv1.KubeAPIServerClientSignerName {
			f.sign(t, c)
		}
	}
	rotated := f.condition(t, "one", names.ConditionCertificateRotated, metav1.ConditionTrue, names.ReasonCertificateUpdated)
	t.Log(rotated.Message)
	for _, signer := range []string{"example.com/first", "example.com/second"} {
		secret := f.secret(t, names.AddOnSignerSecret("one", signer))
		if keys := slices.Sorted(maps.Keys(secret.Data)); !slices.Equal(keys, []string{"cluster-name", "tls.crt", "tls.key"}) {
			t.Errorf("%s: the Secret has %v", secret.Name, keys)
		}
	}
	f.noPending(t)
	f.noCondition(t, names.ConditionTokenRefreshed)

	// A signer that is gone from the status takes its Secret along.
	f.status(t, "one", setRegistrations(kubeClient(), customSigner("example.com/second")))
	eventually(t, "the Secret to go", func() error {
		if f.secret(t, names.AddOnSignerSecret("one", "example.com/first")) != nil {
			return errors.New("it is still there")
		}
		return nil
	})
	if f.secret(t, names.AddOnSignerSecret("one", "example.com/second")) == nil || f.secret(t, "one-hub-kubeconfig") == nil {
		t.Error("another Secret went with it")
	}
	if n := len(f.requests(t, "one")); n != 3 {
		t.Errorf("%d requests were made", n)
	}
	eventually(t, "the series to go", func() error {
		if n := p.series(t, "ocm_addon_credential_expiry_seconds"); n != 2 {
			return fmt.Errorf("%d series", n)
		}
		return nil
	})
}

// TestRequestSurvives kills the agent at every write and expects one request.
func TestRequestSurvives(t *testing.T) {
	t.Parallel()
	f := newFleet(t, driver.CSR)
	f.register(t, "one")
	for writes := 1; writes <= 8; writes++ {
		dead, died := dieAfter(writes)
		p := f.startWith(t, dead)
		p.awaitDeath(t, f, died)
		p.stop()
	}
	f.start(t)
	f.approve(t, "one")
	f.condition(t, "one", names.ConditionCertificateRotated, metav1.ConditionTrue, names.ReasonCertificateUpdated)
	if n := len(f.requests(t, "one")); n != 1 {
		t.Errorf("%d requests were made", n)
	}
	f.noPending(t)
}

// TestRequestOfAnotherHub moves an agent to another hub while a request waits: its
// key is worth nothing there, and nothing on the first hub either any more.
func TestRequestOfAnotherHub(t *testing.T) {
	t.Parallel()
	f := newFleet(t, driver.CSR)
	first := f.config.Hub
	other := first
	other.Cluster.Server = "https://other.example.com"
	f.register(t, "one")
	keys := map[string]bool{}
	for _, hub := range []kubeconfig.Hub{first, other, first} {
		f.config.Hub = hub
		p := f.start(t)
		eventually(t, "a request with another key", func() error {
			key := string(f.pendingKey(t))
			if key == "" || keys[key] {
				return fmt.Errorf("%d keys were used before", len(keys))
			}
			keys[key] = true
			return nil
		})
		eventually(t, "one more request on the hub", func() error {
			if n := len(f.requests(t, "one")); n != len(keys) {
				return fmt.Errorf("%d requests with %d keys", n, len(keys))
			}
			return nil
		})
		p.stop()
	}
}

// pendingKey is the key of the request for the add-on one, empty if there is none.
func (f *fleet) pendingKey(t *testing.T) []byte {
	t.Helper()
	secret := f.secretIn(t, f.namespace, names.AddOnPendingSecret(f.installed(), names.AddOnHubKubeconfigSecret("one")))
	if secret == nil {
		return nil
	}
	return secret.Data[names.KeyTLSKey]
}

func TestDenied(t *testing.T) {
	t.Parallel()
	f := newFleet(t, driver.CSR)
	f.start(t)
	f.register(t, "one")
	f.decide(t, "one", certificatesv1.CertificateDenied)
	f.condition(t, "one", names.ConditionCertificateRotated, metav1.ConditionFalse, csr.ReasonRefused)
	f.condition(t, "one", "Available", metav1.ConditionUnknown, "ManagedClusterAddOnLeaseNotFound")
}

func TestAddOnGoes(t *testing.T) {
	t.Parallel()
	f := newFleet(t, driver.CSR)
	p := f.start(t)
	f.register(t, "one", customSigner("example.com/first"))
	eventually(t, "a pending request", func() error {
		if len(f.requests(t, "one")) != 1 {
			return errors.New("no request")
		}
		return nil
	})
	addOn, err := f.get(t, "one")
	if err == nil {
		err = f.admin.Delete(t.Context(), addOn, client.Preconditions{UID: &addOn.UID})
	}
	if err != nil {
		t.Fatal(err)
	}
	f.noPending(t)
	if n := p.series(t, "ocm_addon_renewals_total"); n != 0 {
		t.Errorf("%d series are left", n)
	}
}
