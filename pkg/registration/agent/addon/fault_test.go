package addon_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/token"
)

// TestUpstreamHub has a hub that makes upstream's ServiceAccount whatever the
// subject says: the agent follows.
func TestUpstreamHub(t *testing.T) {
	t.Parallel()
	f := newFleet(t, driver.Token)
	f.start(t)
	f.register(t, "one")
	f.subject(t, "one", driver.Token)
	uid := f.serve(t, "one", names.AddOnServiceAccountUpstream("one"))
	f.condition(t, "one", names.ConditionTokenRefreshed, metav1.ConditionTrue, names.ReasonAddOnTokenRefreshed)
	if subject := f.subject(t, "one", driver.Token); subject.User != names.ServiceAccountUser(f.cluster, "one-agent") {
		t.Errorf("the subject is %+v", subject)
	}
	if s := f.secret(t, "one-hub-kubeconfig"); string(s.Data[names.KeyServiceAccountUID]) != uid {
		t.Errorf("the token is of %s", s.Data[names.KeyServiceAccountUID])
	}
	// A ServiceAccount that is made anew is followed by the UID in the message.
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: f.cluster, Name: "one-agent"}}
	if err := f.admin.Delete(t.Context(), account); err != nil {
		t.Fatal(err)
	}
	uid = f.serve(t, "one", "one-agent")
	f.awaitSecret(t, "one-hub-kubeconfig", func(data map[string][]byte) bool { return string(data[names.KeyServiceAccountUID]) == uid })
}

// TestRefused has the hub refuse TokenRequests in turn: the condition and an
// event on the hub say why, the token that is there stays, and all is well when
// the hub is.
func TestRefused(t *testing.T) {
	t.Parallel()
	f := newFleet(t, driver.Token)
	p := f.start(t)
	old := f.withToken(t)
	answer := http.StatusTooManyRequests
	f.setRefuse(func(r *http.Request) *http.Response {
		if !strings.HasSuffix(r.URL.Path, "/token") {
			return nil
		}
		return &http.Response{StatusCode: answer, Header: http.Header{}, Body: http.NoBody, Request: r}
	})
	secret := f.secret(t, old.Name)
	f.age(t, secret, 0.81)
	soon := secret.Data["token"]
	if err := f.admin.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	f.condition(t, "one", names.ConditionTokenRefreshed, metav1.ConditionFalse, token.ReasonThrottled)
	if string(f.secret(t, old.Name).Data["token"]) != string(soon) {
		t.Error("the token that can be used is gone")
	}
	eventually(t, "an event on the hub", func() error {
		var events corev1.EventList
		if err := f.admin.List(t.Context(), &events, client.InNamespace(f.cluster)); err != nil {
			return err
		}
		for _, e := range events.Items {
			if e.InvolvedObject.Name == "one" && e.Type == corev1.EventTypeWarning && e.Reason == token.ReasonThrottled {
				return nil
			}
		}
		return fmt.Errorf("%d events", len(events.Items))
	})
	if n := p.series(t, "ocm_addon_renewals_total"); n < 2 {
		t.Errorf("%d series of renewals", n)
	}
	f.setRefuse(nil)
	f.awaitSecret(t, old.Name, func(data map[string][]byte) bool { return string(data["token"]) != string(soon) })
	f.condition(t, "one", names.ConditionTokenRefreshed, metav1.ConditionTrue, names.ReasonAddOnTokenRefreshed)
}

// TestKilledBeforeTheSecret ends the agent between TokenRequest and Secret.
func TestKilledBeforeTheSecret(t *testing.T) {
	t.Parallel()
	f := newFleet(t, driver.Token)
	requested := make(chan struct{})
	var dead atomic.Bool
	p := f.startWith(t, func(r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/secrets") && r.Method == http.MethodPost && dead.CompareAndSwap(false, true) {
			close(requested)
		}
		return dead.Load()
	})
	f.register(t, "one")
	f.subject(t, "one", driver.Token)
	f.serve(t, "one", names.AddOnServiceAccount(f.cluster, "one"))
	<-requested
	p.stop()
	if f.secret(t, "one-hub-kubeconfig") != nil {
		t.Fatal("the Secret was written")
	}
	f.start(t)
	f.condition(t, "one", names.ConditionTokenRefreshed, metav1.ConditionTrue, names.ReasonAddOnTokenRefreshed)
	if f.secret(t, "one-hub-kubeconfig") == nil {
		t.Error("there is no Secret")
	}
}

// TestTwoAgents has two agents for one cluster, which want the same.
func TestTwoAgents(t *testing.T) {
	t.Parallel()
	f := newFleet(t, driver.Token)
	f.start(t)
	f.start(t)
	f.withToken(t)
	f.settled(t)
	f.writes()
	f.annotate(t, "example.com/any", "thing")
	f.settled(t)
	if writes := f.writes(); len(writes) > 0 {
		t.Errorf("the agents wrote %v", writes)
	}
}

// TestConflictingWriters has two agents that want different things: neither gives in, and
// neither keeps the hub busy.
func TestConflictingWriters(t *testing.T) {
	t.Parallel()
	f := newFleet(t, driver.Token)
	f.start(t)
	f.use(driver.CSR)
	f.start(t)
	f.register(t, "one")
	drivers := f.watchDrivers(t)
	// Each says what it wants again when it was undone, and again some time later.
	for round := 1; round <= 5; round++ {
		for _, auth := range []driver.AuthType{driver.Token, driver.CSR} {
			eventually(t, fmt.Sprintf("driver %s for time %d", auth, round), func() error {
				if n := drivers.count(string(auth)); n < round {
					return fmt.Errorf("it was declared %d times", n)
				}
				return nil
			})
		}
	}
	// By then both wait.
	f.settled(t)
	if n := f.writes()["PATCH managedclusteraddons/status"]; n > 24 {
		t.Errorf("the agents wrote the status %d times", n)
	}
}

// declarations counts how often the driver of add-on one became another.
type declarations struct {
	mu    sync.Mutex
	last  string
	times map[string]int
}

func (d *declarations) count(auth string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.times[auth]
}

// watchDrivers counts until the end of the test.
func (f *fleet) watchDrivers(t *testing.T) *declarations {
	t.Helper()
	hub, err := client.NewWithWatch(f.plane.Config(t), client.Options{Scheme: f.admin.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	events, err := hub.Watch(t.Context(), &addonv1beta1.ManagedClusterAddOnList{}, client.InNamespace(f.cluster))
	if err != nil {
		t.Fatal(err)
	}
	d := &declarations{times: map[string]int{}}
	done := make(chan struct{})
	t.Cleanup(func() { events.Stop(); <-done })
	go func() {
		defer close(done)
		for event := range events.ResultChan() {
			addOn, ok := event.Object.(*addonv1beta1.ManagedClusterAddOn)
			if !ok || len(addOn.Status.Registrations) == 0 || addOn.Status.Registrations[0].KubeClient == nil {
				continue
			}
			d.mu.Lock()
			if now := addOn.Status.Registrations[0].KubeClient.Driver; now != d.last && now != "" {
				d.last = now
				d.times[now]++
			}
			d.mu.Unlock()
		}
	}()
	return d
}

// TestInstallNamespace waits for the namespace before it asks for anything.
func TestInstallNamespace(t *testing.T) {
	t.Parallel()
	f := newFleet(t, driver.Token)
	f.start(t)
	f.register(t, "one")
	f.status(t, "one", func(s *addonStatus) { s.Namespace = "" })
	late := "late-" + f.cluster
	f.annotate(t, names.AnnotationInstallNamespace, late)
	f.subject(t, "one", driver.Token)
	f.serve(t, "one", names.AddOnServiceAccount(f.cluster, "one"))
	f.condition(t, "one", names.ConditionTokenRefreshed, metav1.ConditionFalse, names.ReasonInstallNamespaceMissing)
	if n := f.writes()["POST serviceaccounts/token"]; n != 0 {
		t.Errorf("%d tokens were requested", n)
	}
	create(t, f.admin, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: late}})
	f.condition(t, "one", names.ConditionTokenRefreshed, metav1.ConditionTrue, names.ReasonAddOnTokenRefreshed)
	if f.secretIn(t, late, "one-hub-kubeconfig") == nil {
		t.Error("there is no Secret")
	}
	// It moves, and takes its Secret along.
	f.status(t, "one", func(s *addonStatus) { s.Namespace = f.installed() })
	f.awaitSecret(t, "one-hub-kubeconfig", func(map[string][]byte) bool { return true })
	eventually(t, "the former Secret to go", func() error {
		if f.secretIn(t, late, "one-hub-kubeconfig") != nil {
			return errors.New("it is there")
		}
		return nil
	})
}

// TestHosted has an add-on whose agent runs elsewhere: nothing is written here.
func TestHosted(t *testing.T) {
	t.Parallel()
	f := newFleet(t, driver.Token)
	f.start(t)
	f.register(t, "one")
	f.annotate(t, names.AnnotationHostingCluster, "elsewhere")
	f.condition(t, "one", names.ConditionTokenRefreshed, metav1.ConditionFalse, names.ReasonHostedElsewhere)
	f.settled(t)
	if f.secret(t, "one-hub-kubeconfig") != nil {
		t.Error("there is a Secret")
	}
	// Hosted on its own cluster is not hosted.
	f.annotate(t, names.AnnotationHostingCluster, f.cluster)
	f.serve(t, "one", names.AddOnServiceAccount(f.cluster, "one"))
	f.condition(t, "one", names.ConditionTokenRefreshed, metav1.ConditionTrue, names.ReasonAddOnTokenRefreshed)
}

// TestReserved has an add-on whose Secret would be the agent's own.
func TestReserved(t *testing.T) {
	t.Parallel()
	f := newFleet(t, driver.Token)
	f.start(t)
	create(t, f.admin, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: names.BootstrapHubKubeconfigSecret}, Data: map[string][]byte{"kubeconfig": []byte("mine")}})
	f.register(t, "bootstrap")
	f.status(t, "bootstrap", func(s *addonStatus) { s.Namespace = f.namespace })
	f.condition(t, "bootstrap", names.ConditionTokenRefreshed, metav1.ConditionFalse, names.ReasonDriverUnavailable)
	if s := f.secretIn(t, f.namespace, names.BootstrapHubKubeconfigSecret); string(s.Data["kubeconfig"]) != "mine" {
		t.Error("the agent's Secret was overwritten")
	}
}

// TestDeleting leaves the credential of an add-on that cleans up, and takes it
// away when the add-on is gone, also if no agent ran at that moment.
func TestDeleting(t *testing.T) {
	t.Parallel()
	f := newFleet(t, driver.Token)
	p := f.start(t)
	secret := f.withToken(t)
	f.finalize(t, "example.com/cleanup")
	addOn := &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: f.cluster, Name: "one"}}
	if err := f.admin.Delete(t.Context(), addOn); err != nil {
		t.Fatal(err)
	}
	f.settled(t)
	if f.secret(t, secret.Name) == nil {
		t.Error("the Secret is gone while the add-on cleans up")
	}
	p.stop()
	f.finalize(t)
	// A mark on somebody else's Secret is no permission to delete it.
	create(t, f.admin, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: f.installed(), Name: "precious", Labels: map[string]string{names.LabelAddOnCredential: f.namespace}, Annotations: map[string]string{names.AnnotationCredentialAddOn: "one"},
	}})
	f.start(t)
	eventually(t, "the Secret to go", func() error {
		if f.secret(t, secret.Name) != nil {
			return errors.New("it is there")
		}
		return nil
	})
	f.settled(t)
	if f.secret(t, "precious") == nil {
		t.Error("somebody else's Secret is gone")
	}
}

// TestRenewedWhileDeleting renews the credential of an add-on that cleans up,
// which may take longer than the credential has to go.
func TestRenewedWhileDeleting(t *testing.T) {
	t.Parallel()
	for _, auth := range []driver.AuthType{driver.Token, driver.CSR} {
		t.Run(string(auth), func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, auth)
			f.start(t)
			var old *corev1.Secret
			if auth == driver.Token {
				old = f.withToken(t)
			} else {
				old = f.withCertificate(t, "one")
			}
			f.finalize(t, "example.com/cleanup")
			addOn := &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: f.cluster, Name: "one"}}
			if err := f.admin.Delete(t.Context(), addOn); err != nil {
				t.Fatal(err)
			}
			f.annotate(t, names.AnnotationRotate, now().UTC().Format(time.RFC3339))
			if auth == driver.CSR {
				f.approve(t, "one")
			}
			f.awaitSecret(t, old.Name, func(data map[string][]byte) bool {
				return string(data["token"])+string(data["tls.key"]) != string(old.Data["token"])+string(old.Data["tls.key"])
			})
			f.finalize(t)
		})
	}
}

// TestSwitchWithASigner: an add-on whose other signer has issued a certificate
// says that there is none yet for the registration that had a token.
func TestSwitchWithASigner(t *testing.T) {
	t.Parallel()
	f := newFleet(t, driver.Token)
	p := f.start(t)
	f.withToken(t)
	f.status(t, "one", setRegistrations(kubeClient(), customSigner("example.com/signer")))
	f.approve(t, "one")
	eventually(t, "a request for the signer", func() error {
		for _, request := range f.requests(t, "one") {
			if request.Spec.SignerName == "example.com/signer" && len(request.Status.Conditions) > 0 {
				f.sign(t, request)
				return nil
			}
		}
		return errors.New("there is none")
	})
	f.condition(t, "one", names.ConditionCertificateRotated, metav1.ConditionTrue, names.ReasonCertificateUpdated)
	p.stop()

	first := make(chan []byte, 1)
	f.setRefuse(func(r *http.Request) *http.Response {
		if r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/managedclusteraddons/one/status") {
			body, err := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(body))
			if err != nil {
				t.Error(err)
			}
			select {
			case first <- body:
			default:
			}
		}
		return nil
	})
	f.use(driver.CSR)
	f.start(t)
	if body := <-first; !bytes.Contains(body, []byte(`"driver":"csr"`)) || !bytes.Contains(body, []byte(`"reason":"`+names.ReasonAddOnDeclared+`"`)) {
		t.Errorf("the driver was declared with the condition of the other signer: %s", body)
	}
	eventually(t, "a request that nobody approves", func() error {
		for _, request := range f.requests(t, "one") {
			if request.Spec.SignerName == certificatesv1.KubeAPIServerClientSignerName {
				return nil
			}
		}
		return errors.New("there is none")
	})
	f.settled(t)
	addOn, err := f.get(t, "one")
	if err != nil || !apimeta.IsStatusConditionFalse(addOn.Status.Conditions, names.ConditionCertificateRotated) {
		t.Errorf("conditions %+v, %v", addOn.Status.Conditions, err)
	}
}

// TestBlind has an agent that may not see Secrets on its cluster, which says so
// and deletes nothing.
func TestBlind(t *testing.T) {
	t.Parallel()
	f := newFleet(t, driver.Token)
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "open-cluster-management:" + f.cluster + "-registration:addon-management"}}
	if err := f.admin.Delete(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	f.start(t)
	f.register(t, "one")
	c := f.condition(t, "one", names.ConditionTokenRefreshed, metav1.ConditionFalse, names.ReasonSecretsUnknown)
	if !strings.Contains(c.Message, f.namespace) {
		t.Errorf("message %q", c.Message)
	}
}

// TestOtherHub has the agents of two hubs on one cluster, with the same add-on
// in the same namespace: the second leaves the first's Secret alone, until the
// first is gone.
func TestOtherHub(t *testing.T) {
	t.Parallel()
	first, second := newFleet(t, driver.Token), newFleet(t, driver.Token)
	p := first.start(t)
	mine := first.withToken(t)
	second.start(t)
	second.register(t, "one")
	second.status(t, "one", func(s *addonStatus) { s.Namespace = first.installed() })
	second.subject(t, "one", driver.Token)
	second.serve(t, "one", names.AddOnServiceAccount(second.cluster, "one"))
	second.condition(t, "one", names.ConditionTokenRefreshed, metav1.ConditionFalse, names.ReasonSecretTaken)
	if now := first.secret(t, mine.Name); now.ResourceVersion != mine.ResourceVersion {
		t.Error("the Secret was changed")
	}
	p.stop()
	if err := first.admin.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: first.namespace}}); err != nil {
		t.Fatal(err)
	}
	second.condition(t, "one", names.ConditionTokenRefreshed, metav1.ConditionTrue, names.ReasonAddOnTokenRefreshed)
}

// TestVandal has somebody who destroys the credential over and over.
func TestVandal(t *testing.T) {
	t.Parallel()
	f := newFleet(t, driver.Token)
	f.start(t)
	secret := f.withToken(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { // Ends with ctx.
		defer close(done)
		for ctx.Err() == nil {
			_ = f.admin.Delete(ctx, secret.DeepCopy())
			pause(20 * time.Millisecond)
		}
	}()
	f.condition(t, "one", names.ConditionTokenRefreshed, metav1.ConditionFalse, names.ReasonSecretTaken)
	if n := f.writes()["POST serviceaccounts/token"]; n > 6 {
		t.Errorf("%d tokens were requested", n)
	}
	cancel()
	<-done
	f.condition(t, "one", names.ConditionTokenRefreshed, metav1.ConditionTrue, names.ReasonAddOnTokenRefreshed)
}

// TestDetached takes the cluster's rights on the hub away: what it has stays,
// until the hub says that the add-on is gone.
func TestDetached(t *testing.T) {
	t.Parallel()
	f := newFleet(t, driver.Token)
	f.start(t)
	secret := f.withToken(t)
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: f.cluster, Name: names.RegistrationRoleBinding(f.cluster)}}
	if err := f.admin.Delete(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	f.annotate(t, "example.com/any", "thing")
	f.settled(t)
	if s := f.secret(t, secret.Name); s == nil || s.ResourceVersion != secret.ResourceVersion {
		t.Error("the Secret was changed")
	}
	addOn, err := f.get(t, "one")
	if err == nil {
		err = f.admin.Delete(t.Context(), addOn)
	}
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the Secret to go", func() error {
		if f.secret(t, secret.Name) != nil {
			return errors.New("it is there")
		}
		return nil
	})
}
