package token_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/token"
)

const (
	ownUser      = "system:serviceaccount:c1:c1-a-agent"
	upstreamUser = "system:serviceaccount:c1:a-agent"
)

func epoch() time.Time { return time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC) }

// said is the hub's condition with a status and a message; none if empty.
func said(status metav1.ConditionStatus, message string) []metav1.Condition {
	if status == "" {
		return nil
	}
	return []metav1.Condition{{Type: names.ConditionTokenInfrastructureReady, Status: status, Message: message}}
}

// kubeClient is a kubeClient registration.
func kubeClient(driver, user string, groups ...string) addonv1beta1.RegistrationConfig {
	return addonv1beta1.RegistrationConfig{Type: addonv1beta1.KubeClient, KubeClient: &addonv1beta1.KubeClientConfig{
		Driver:  driver,
		Subject: addonv1beta1.KubeClientSubject{BaseSubject: addonv1beta1.BaseSubject{User: user, Groups: groups}},
	}}
}

// newAddOn returns the driver for add-on a of cluster c1.
func newAddOn(registration addonv1beta1.RegistrationConfig, conditions ...metav1.Condition) *token.AddOn {
	return token.NewAddOn(token.Config{
		Cluster: "c1",
		AddOn: &addonv1beta1.ManagedClusterAddOn{
			ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "a"},
			Status:     addonv1beta1.ManagedClusterAddOnStatus{Conditions: conditions},
		},
		Registration: registration,
		Clock:        clocktesting.NewFakePassiveClock(epoch()),
	})
}

func TestDeclare(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name         string
		registration addonv1beta1.RegistrationConfig
		status       metav1.ConditionStatus
		message      string
		want         string
	}{
		{name: "nothing yet", registration: addonv1beta1.RegistrationConfig{Type: addonv1beta1.KubeClient}, want: ownUser},
		{name: "no subject", registration: kubeClient("", ""), want: ownUser},
		{name: "a subject of the csr driver", registration: kubeClient("csr", names.AddOnUser("c1", "a", "a"), names.AddOnGroup("a")), want: ownUser},
		{name: "the same with the driver declared already", registration: kubeClient("token", names.AddOnUser("c1", "a", "a"), names.AddOnGroup("a")), want: ownUser},
		{name: "ours", registration: kubeClient("token", ownUser), want: ownUser},
		{name: "upstream's stays", registration: kubeClient("token", upstreamUser), want: upstreamUser},
		{name: "groups go", registration: kubeClient("token", upstreamUser, "g"), want: upstreamUser},
		{name: "another ServiceAccount", registration: kubeClient("token", "system:serviceaccount:c1:admin"), want: ownUser},
		{name: "another namespace", registration: kubeClient("token", "system:serviceaccount:c2:a-agent"), want: ownUser},
		{name: "the hub made ours", registration: kubeClient("token", upstreamUser), status: "True", message: "ServiceAccount c1/c1-a-agent (UID: 1) is ready", want: ownUser},
		{name: "the hub made upstream's", registration: kubeClient("token", ownUser), status: "True", message: "ServiceAccount c1/a-agent (UID: 1) is ready", want: upstreamUser},
		{name: "the hub is not ready", registration: kubeClient("token", ownUser), status: "False", message: "ServiceAccount c1/a-agent (UID: 1) is ready", want: ownUser},
		{name: "the hub made another", registration: kubeClient("token", ownUser), status: "True", message: "ServiceAccount c1/admin (UID: 1) is ready", want: ownUser},
		{name: "the hub made one elsewhere", registration: kubeClient("token", ownUser), status: "True", message: "ServiceAccount c2/a-agent (UID: 1) is ready", want: ownUser},
		{name: "another add-on's", registration: kubeClient("token", ownUser), status: "True", message: "ServiceAccount c1/c1-b-agent (UID: 1) is ready", want: ownUser},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			before := tc.registration.DeepCopy()
			got := newAddOn(tc.registration, said(tc.status, tc.message)...).Declare()
			if diff := cmp.Diff(kubeClient("token", tc.want), got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if diff := cmp.Diff(*before, tc.registration); diff != "" {
				t.Errorf("it changed what it was given: %s", diff)
			}
			if again := newAddOn(got, said(tc.status, tc.message)...).Declare(); !cmp.Equal(got, again) {
				t.Errorf("declared, it declares something else: %s", cmp.Diff(got, again))
			}
		})
	}
}

// claimsOf are the claims of a good token; change makes them bad.
func claimsOf(change func(c, serviceAccount map[string]any)) map[string]any {
	account := map[string]any{"name": "c1-a-agent", "uid": "u1"}
	c := map[string]any{
		"iat": epoch().Unix(), "nbf": epoch().Unix(), "exp": epoch().Add(time.Hour).Unix(),
		"kubernetes.io": map[string]any{"namespace": "c1", "serviceaccount": account},
	}
	if change != nil {
		change(c, account)
	}
	return c
}

// encode makes a token of claims, with a signature that nobody has made.
func encode(tb testing.TB, claims any) []byte {
	tb.Helper()
	payload, err := json.Marshal(claims)
	if err != nil {
		tb.Fatal(err)
	}
	part := base64.RawURLEncoding.EncodeToString
	return []byte(part([]byte(`{"alg":"RS256"}`)) + "." + part(payload) + "." + part([]byte("signature")))
}

func TestInspect(t *testing.T) {
	t.Parallel()
	ready := said("True", "ServiceAccount c1/c1-a-agent (UID: u1) is ready")
	good := func(change func(c, serviceAccount map[string]any)) []byte { return encode(t, claimsOf(change)) }
	for _, tc := range []struct {
		name  string
		hub   []metav1.Condition
		token []byte
		want  error
		life  time.Duration
	}{
		{name: "good", hub: ready, token: good(nil), life: time.Hour},
		{name: "good, with the hub silent", token: good(nil), life: time.Hour},
		{name: "good, with the hub failing", hub: said("False", "no"), token: good(nil), life: time.Hour},
		{name: "parts of seconds", hub: ready, token: good(func(c, _ map[string]any) { c["exp"] = float64(epoch().Unix()) + 0.5 }), life: 500 * time.Millisecond},
		{name: "without iat", hub: ready, token: good(func(c, _ map[string]any) { delete(c, "iat") }), life: time.Hour},
		{name: "none", hub: ready, want: credential.ErrMissing},
		{name: "an earlier ServiceAccount's", hub: said("True", "ServiceAccount c1/c1-a-agent (UID: u2) is ready"), token: good(nil), want: credential.ErrWrongIdentity},
		{name: "the other spelling's", hub: said("True", "ServiceAccount c1/a-agent (UID: u1) is ready"), token: good(nil), want: credential.ErrWrongIdentity},
		{name: "another add-on's", token: good(func(_, a map[string]any) { a["name"] = "c1-b-agent" }), want: credential.ErrWrongIdentity},
		{name: "another cluster's", token: good(func(c, _ map[string]any) {
			c["kubernetes.io"] = map[string]any{"namespace": "c2", "serviceaccount": map[string]any{"name": "c1-a-agent", "uid": "u1"}}
		}), want: credential.ErrWrongIdentity},
		{name: "no ServiceAccount's", hub: ready, token: good(func(c, _ map[string]any) { delete(c, "kubernetes.io") }), want: credential.ErrMalformed},
		{name: "no UID", hub: ready, token: good(func(_, a map[string]any) { delete(a, "uid") }), want: credential.ErrMalformed},
		{name: "no end", hub: ready, token: good(func(c, _ map[string]any) { delete(c, "exp") }), want: credential.ErrMalformed},
		{name: "no beginning", hub: ready, token: good(func(c, _ map[string]any) { delete(c, "iat"); delete(c, "nbf") }), want: credential.ErrMalformed},
		{name: "an end before the beginning", hub: ready, token: good(func(c, _ map[string]any) { c["exp"] = 1 }), want: credential.ErrMalformed},
		{name: "an end before time", hub: ready, token: good(func(c, _ map[string]any) { c["exp"] = -1 }), want: credential.ErrMalformed},
		{name: "an end after time", hub: ready, token: good(func(c, _ map[string]any) { c["exp"] = 1e300 }), want: credential.ErrMalformed},
		{name: "an end in words", hub: ready, token: good(func(c, _ map[string]any) { c["exp"] = "tomorrow" }), want: credential.ErrMalformed},
		{name: "claims that are a list", hub: ready, token: encode(t, []int{1}), want: credential.ErrMalformed},
		{name: "no JWT", hub: ready, token: []byte("abc"), want: credential.ErrMalformed},
		{name: "an opaque token", hub: ready, token: []byte("a.b"), want: credential.ErrMalformed},
		{name: "padding", hub: ready, token: append(good(nil), '='), want: credential.ErrMalformed},
		{name: "a line break", hub: ready, token: append(good(nil), '\n'), want: credential.ErrMalformed},
		{name: "no signature", hub: ready, token: []byte(strings.TrimSuffix(string(good(nil)), base64.RawURLEncoding.EncodeToString([]byte("signature")))), want: credential.ErrMalformed},
		{name: "too much", hub: ready, token: []byte(strings.Repeat("a", 1<<20)), want: credential.ErrMalformed},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			validity, err := newAddOn(kubeClient("token", ownUser), tc.hub...).Inspect(driver.Data{names.KeyToken: tc.token})
			if !errors.Is(err, tc.want) {
				t.Fatalf("got %v, want %v", err, tc.want)
			}
			if tc.want != nil {
				revealsNothing(t, err, tc.token)
			}
			if validity.Lifetime() != tc.life {
				t.Errorf("it is good for %v, want %v", validity.Lifetime(), tc.life)
			}
		})
	}
}

// tellsNothing fails if an error holds any part of a token, decoded or not.
func revealsNothing(t *testing.T, err error, token []byte) {
	t.Helper()
	for part := range strings.SplitSeq(string(token), ".") {
		if len(part) >= 8 && strings.Contains(err.Error(), part) {
			t.Errorf("the error holds a part of the token: %v", err)
		}
		decoded, wrong := base64.RawURLEncoding.DecodeString(part)
		if wrong == nil && len(decoded) >= 8 && strings.Contains(err.Error(), string(decoded)) {
			t.Errorf("the error holds a decoded part of the token: %v", err)
		}
	}
}

// The other keys are for people and are never needed.
func TestInspectReadsTheTokenAlone(t *testing.T) {
	t.Parallel()
	stored := driver.Data{
		names.KeyToken: encode(t, claimsOf(nil)), names.KeyExpiration: []byte("never"),
		names.KeyServiceAccountUID: []byte("x"), names.KeyServiceAccountName: []byte("y"),
	}
	with, err := newAddOn(kubeClient("token", ownUser)).Inspect(stored)
	if err != nil {
		t.Fatal(err)
	}
	maps.DeleteFunc(stored, func(key string, _ []byte) bool { return key != names.KeyToken })
	without, err := newAddOn(kubeClient("token", ownUser)).Inspect(stored)
	if err != nil || with != without {
		t.Errorf("with the other keys %v, without %v, %v", with, without, err)
	}
}

// FuzzInspect: nothing in a Secret makes the driver panic, and what it takes for
// a credential has the right identity and a lifetime that can be reckoned with.
func FuzzInspect(f *testing.F) {
	f.Add(encode(f, claimsOf(nil)))
	f.Add(encode(f, claimsOf(func(c, _ map[string]any) { c["exp"] = 1e300 })))
	f.Add([]byte("a.e30.c"))
	f.Fuzz(func(t *testing.T, stored []byte) {
		validity, err := newAddOn(kubeClient("token", ownUser), said("True", "ServiceAccount c1/c1-a-agent (UID: u1) is ready")...).Inspect(driver.Data{names.KeyToken: stored})
		if err != nil {
			if !errors.Is(err, credential.ErrMissing) && !errors.Is(err, credential.ErrMalformed) && !errors.Is(err, credential.ErrWrongIdentity) {
				t.Fatalf("%v is none of the problems", err)
			}
			return
		}
		at := credential.RenewAt(validity, credential.Tokens(), "seed")
		if validity.Lifetime() <= 0 || at.Before(validity.NotBefore) || !at.Before(validity.NotAfter) {
			t.Errorf("%+v is renewed at %v", validity, at)
		}
		if _, err := validity.NotAfter.MarshalText(); err != nil {
			t.Errorf("its end cannot be told: %v", err)
		}
	})
}

// FuzzCondition: whatever the hub's status says, the subject is one of two, and
// no token of anything else is requested.
func FuzzCondition(f *testing.F) {
	f.Add("ServiceAccount c1/c1-a-agent (UID: u1) is ready", upstreamUser)
	f.Add("ServiceAccount c1/admin (UID: u1) is ready", "system:serviceaccount:c1:admin")
	f.Fuzz(func(t *testing.T, message, user string) {
		addOn := newAddOn(kubeClient("token", user), said("True", message)...)
		if got := addOn.Declare().KubeClient.Subject.User; got != ownUser && got != upstreamUser {
			t.Fatalf("it would be %s", got)
		}
		hub := &recorder{}
		step, err := addOn.Obtain(t.Context(), hub, nil)
		for _, account := range hub.requested {
			if account != "c1/c1-a-agent" && account != "c1/a-agent" {
				t.Fatalf("it requested a token of %s", account)
			}
		}
		if len(hub.requested) == 0 && (err != nil || step.Waiting.Reason == "" || len(step.Waiting.Message) > 4096) {
			t.Errorf("it requested nothing and says %+v, %v", step, err)
		}
	})
}
