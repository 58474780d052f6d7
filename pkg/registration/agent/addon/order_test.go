package addon_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// said is what a write of an agent says about the kubeClient registration.
type said struct{ driver, user string }

// statusWrites are an agent's writes of the status of add-on one, in order.
type statusWrites struct {
	mu  sync.Mutex
	all []said
	// refuse are the first so many that are about the registration, which the hub refuses.
	refuse int
}

// take notes a write, and answers it if it is to be refused.
func (w *statusWrites) take(t *testing.T, r *http.Request) *http.Response {
	t.Helper()
	if r.Method == http.MethodGet || !strings.HasSuffix(r.URL.Path, "/managedclusteraddons/one/status") {
		return nil
	}
	body, err := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	var addOn addonv1beta1.ManagedClusterAddOn
	if err := errors.Join(err, json.Unmarshal(body, &addOn)); err != nil {
		t.Errorf("a write of the status: %v", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	before := len(w.all)
	for _, registration := range addOn.Status.Registrations {
		if c := registration.KubeClient; c != nil {
			w.all = append(w.all, said{driver: c.Driver, user: c.Subject.User})
		}
	}
	if len(w.all) == before || w.refuse == 0 {
		return nil // Others are about conditions.
	}
	w.refuse--
	return &http.Response{StatusCode: http.StatusServiceUnavailable, Header: http.Header{}, Body: http.NoBody, Request: r}
}

func (w *statusWrites) list() []said {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.all)
}

// TestDriverBeforeSubject expects an agent to write the driver of a registration
// and then its subject, never both at once and never the subject while the hub
// has not taken the driver: the hub chooses by the driver whom it prepares for.
func TestDriverBeforeSubject(t *testing.T) {
	t.Parallel()
	f := newFleet(t, driver.Token)
	former := said{}
	for _, auth := range []driver.AuthType{driver.Token, driver.CSR, driver.Token} {
		// The hub takes the driver at the third attempt.
		writes := &statusWrites{refuse: 2}
		f.setRefuse(func(r *http.Request) *http.Response { return writes.take(t, r) })
		f.use(auth)
		p := f.start(t)
		if former.driver == "" {
			f.register(t, "one")
		}
		subject := f.subject(t, "one", auth)
		p.stop()
		all := writes.list()
		driverOnly, whole := said{string(auth), former.user}, said{string(auth), subject.User}
		if got, want := slices.Compact(slices.Clone(all)), []said{driverOnly, whole}; !slices.Equal(got, want) {
			t.Errorf("from %+v the agent wrote %+v, want %+v", former, got, want)
		}
		if i := slices.Index(all, whole); i < 3 {
			t.Errorf("the subject was written in write %d, and the hub took the driver in the third", i+1)
		}
		former = said{string(auth), subject.User}
	}
}

// TestTokenWithASigner has a token driver obtain the credential of one
// registration of an add-on and the add-on's signer that of the other: neither
// waits for the other or disturbs it.
func TestTokenWithASigner(t *testing.T) {
	t.Parallel()
	const signer = "example.com/signer"
	f := newFleet(t, driver.Token)
	f.start(t)
	f.register(t, "one", customSigner(signer), kubeClient())
	subject := f.subject(t, "one", driver.Token)
	f.serve(t, "one", names.AddOnServiceAccount(f.cluster, "one"))
	// The token does not wait for the signer.
	f.awaitSecret(t, names.AddOnHubKubeconfigSecret("one"), func(data map[string][]byte) bool { return len(data[names.KeyToken]) > 0 })
	f.condition(t, "one", names.ConditionTokenRefreshed, metav1.ConditionTrue, names.ReasonAddOnTokenRefreshed)
	f.approve(t, "one")
	requests := f.requests(t, "one")
	if len(requests) != 1 || requests[0].Spec.SignerName != signer {
		t.Fatalf("requests %+v", requests)
	}
	f.sign(t, requests[0])
	f.condition(t, "one", names.ConditionCertificateRotated, metav1.ConditionTrue, names.ReasonCertificateUpdated)
	f.condition(t, "one", names.ConditionTokenRefreshed, metav1.ConditionTrue, names.ReasonAddOnTokenRefreshed)

	token, certificate := f.secret(t, names.AddOnHubKubeconfigSecret("one")), f.secret(t, names.AddOnSignerSecret("one", signer))
	keys := slices.Sorted(maps.Keys(token.Data))
	if want := []string{"cluster-name", "expiration", "kubeconfig", "serviceaccount_name", "serviceaccount_uid", "token"}; !slices.Equal(keys, want) {
		t.Errorf("the Secret of the token has %v, want %v", keys, want)
	}
	keys = slices.Sorted(maps.Keys(certificate.Data))
	if want := []string{"cluster-name", "tls.crt", "tls.key"}; !slices.Equal(keys, want) {
		t.Errorf("the Secret of the certificate has %v, want %v", keys, want)
	}
	var who authenticationv1.SelfSubjectReview
	if err := plane.ClientFor(t, plane.ConfigForToken(string(token.Data["token"]))).Create(t.Context(), &who); err != nil || who.Status.UserInfo.Username != subject.User {
		t.Errorf("the hub takes the token for %s, %v", who.Status.UserInfo.Username, err)
	}
	f.expectRegistrations(t, signer, subject.User)
	if n := len(f.requests(t, "one")); n != 1 {
		t.Errorf("%d requests were made", n)
	}
	f.noPending(t)
}

// expectRegistrations looks at whom the registrations of TestTokenWithASigner
// are for.
func (f *fleet) expectRegistrations(t *testing.T, signer, account string) {
	t.Helper()
	addOn, err := f.get(t, "one")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range addOn.Status.Registrations {
		switch {
		case r.CustomSigner != nil:
			got = append(got, fmt.Sprintf("%s %s", r.CustomSigner.SignerName, r.CustomSigner.Subject.User))
		case r.KubeClient != nil:
			got = append(got, fmt.Sprintf("%s %s", r.KubeClient.Driver, r.KubeClient.Subject.User))
		}
	}
	if want := []string{signer + " " + names.AddOnUser(f.cluster, "one", "one"), "token " + account}; !slices.Equal(got, want) {
		t.Errorf("registrations %v, want %v", got, want)
	}
}
