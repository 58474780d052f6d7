package addon_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// TestRenewal plants what needs to be replaced beside a token, and expects one
// TokenRequest for each.
func TestRenewal(t *testing.T) {
	t.Parallel()
	f := newFleet(t, driver.Token)
	f.start(t)
	good := f.withToken(t)
	account := names.AddOnServiceAccount(f.cluster, "one")
	uid := string(good.Data[names.KeyServiceAccountUID])
	for _, tc := range []struct {
		name   string
		damage func(*corev1.Secret)
	}{
		{name: "near expiry", damage: func(s *corev1.Secret) { f.age(t, s, 0.81) }},
		{name: "expired", damage: func(s *corev1.Secret) {
			s.Data["token"] = forge(t, f.cluster, account, uid, now().Add(-500*time.Second), now().Add(-time.Second))
		}},
		{name: "of an earlier ServiceAccount", damage: func(s *corev1.Secret) {
			s.Data["token"] = forge(t, f.cluster, account, "other", now(), now().Add(time.Hour))
		}},
		{name: "no token", damage: func(s *corev1.Secret) { delete(s.Data, "token") }},
		{name: "garbage", damage: func(s *corev1.Secret) { s.Data["token"] = []byte("x") }},
	} {
		f.writes()
		secret := f.secret(t, good.Name)
		tc.damage(secret)
		if err := f.admin.Update(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
		damaged := string(secret.Data["token"])
		renewed := f.awaitSecret(t, good.Name, func(data map[string][]byte) bool { return len(data["token"]) > 100 && string(data["token"]) != damaged })
		f.condition(t, "one", names.ConditionTokenRefreshed, metav1.ConditionTrue, names.ReasonAddOnTokenRefreshed)
		f.settled(t)
		if writes := f.writes(); writes["POST serviceaccounts/token"] != 1 || writes["PUT secrets"] != 1 || writes["PATCH managedclusteraddons/status"] > 1 {
			t.Errorf("%s: the agent wrote %v", tc.name, writes)
		}
		if string(renewed.Data["kubeconfig"]) != string(good.Data["kubeconfig"]) {
			t.Errorf("%s: another kubeconfig", tc.name)
		}
	}

	// One that has more than the last three tenths of its life is left alone.
	f.writes()
	secret := f.secret(t, good.Name)
	f.age(t, secret, 0.69)
	if err := f.admin.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	f.settled(t)
	if writes := f.writes(); writes["POST serviceaccounts/token"] != 0 || writes["PUT secrets"] != 0 {
		t.Errorf("with three tenths of its life left: the agent wrote %v", writes)
	}

	// What surrounds the token is repaired without another token.
	secret = f.secret(t, good.Name)
	secret.Data["kubeconfig"] = []byte("{}")
	delete(secret.Data, "cluster-name")
	if err := f.admin.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	f.awaitSecret(t, good.Name, func(data map[string][]byte) bool {
		return string(data["cluster-name"]) == f.cluster && string(data["kubeconfig"]) == string(good.Data["kubeconfig"])
	})
	f.settled(t)
	if writes := f.writes(); len(writes) != 1 || writes["PUT secrets"] != 1 {
		t.Errorf("the agent wrote %v", writes)
	}

	// A Secret that is deleted comes back.
	if err := f.admin.Delete(t.Context(), f.secret(t, good.Name)); err != nil {
		t.Fatal(err)
	}
	f.awaitSecret(t, good.Name, func(data map[string][]byte) bool { return len(data["token"]) > 100 })
}

// age puts a token into a Secret of which that part of an hour's life is used,
// and which has longer to go than any test waits.
func (f *fleet) age(t *testing.T, secret *corev1.Secret, used float64) {
	t.Helper()
	issued := now().Add(-time.Duration(used * float64(time.Hour)))
	account := names.AddOnServiceAccount(f.cluster, "one")
	secret.Data["token"] = forge(t, f.cluster, account, string(secret.Data[names.KeyServiceAccountUID]), issued, issued.Add(time.Hour))
	delete(secret.Annotations, names.AnnotationCredentialObtained)
}

// soon is longer than any wait is left pendingGrace.
const soon = 1500 * time.Millisecond

// settled waits until every agent of the cluster has nothing to do: it has seen
// all that is there, a look at each add-on changes nothing, and none is to be
// looked at soon.
func (f *fleet) settled(t *testing.T) {
	t.Helper()
	eventually(t, "the agents to be at rest", func() error {
		f.mu.Lock()
		running := slices.Clone(f.running)
		f.mu.Unlock()
		before := fmt.Sprint(f.peek())
		for _, p := range running {
			if err := p.observed.Idle(t.Context(), f.admin, soon); err != nil {
				return err
			}
		}
		if after := fmt.Sprint(f.peek()); after != before {
			return fmt.Errorf("they wrote %s, and now %s", before, after)
		}
		return nil
	})
}

// TestRotate asks for new credentials of both drivers.
func TestRotate(t *testing.T) {
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
			// Whoever asks has a clock that is behind the agent's.
			f.annotate(t, names.AnnotationRotate, now().Add(-5*time.Minute).UTC().Format(time.RFC3339))
			if auth == driver.CSR {
				f.approve(t, "one")
			}
			same := func(data map[string][]byte) bool {
				return string(data["token"])+string(data["tls.key"]) == string(old.Data["token"])+string(old.Data["tls.key"])
			}
			f.awaitSecret(t, old.Name, func(data map[string][]byte) bool { return !same(data) })
			f.settled(t)
			f.writes()
			// It is answered once; an earlier time and nonsense ask for nothing.
			f.annotate(t, names.AnnotationRotate, now().Add(-time.Hour).UTC().Format(time.RFC3339))
			f.annotate(t, names.AnnotationRotate, "soon")
			f.settled(t)
			if writes := f.writes(); len(writes) > 0 {
				t.Errorf("the agent wrote %v", writes)
			}
		})
	}
}

// TestSwitch changes the driver of a running add-on there and back.
func TestSwitch(t *testing.T) {
	t.Parallel()
	f := newFleet(t, driver.CSR)
	p := f.start(t)
	f.withCertificate(t, "one")
	p.stop()

	f.use(driver.Token)
	p = f.start(t)
	f.subject(t, "one", driver.Token)
	if s := f.secret(t, "one-hub-kubeconfig"); s == nil || len(s.Data["tls.crt"]) == 0 {
		t.Error("the certificate is gone before there is a token")
	}
	f.serve(t, "one", names.AddOnServiceAccount(f.cluster, "one"))
	f.condition(t, "one", names.ConditionTokenRefreshed, metav1.ConditionTrue, names.ReasonAddOnTokenRefreshed)
	f.noCondition(t, names.ConditionCertificateRotated)
	if s := f.secret(t, "one-hub-kubeconfig"); len(s.Data["tls.crt"])+len(s.Data["tls.key"]) > 0 || len(s.Data["token"]) == 0 {
		t.Error("the Secret holds what is left of the certificate")
	}
	p.stop()

	f.use(driver.CSR)
	f.start(t)
	subject := f.subject(t, "one", driver.CSR)
	if subject.User != names.AddOnUser(f.cluster, "one", "one") {
		t.Errorf("declared %+v", subject)
	}
	if s := f.secret(t, "one-hub-kubeconfig"); s == nil || len(s.Data["token"]) == 0 {
		t.Error("the token is gone before there is a certificate")
	}
	f.approve(t, "one")
	f.condition(t, "one", names.ConditionCertificateRotated, metav1.ConditionTrue, names.ReasonCertificateUpdated)
	f.noCondition(t, names.ConditionTokenRefreshed)
	f.noCondition(t, names.ConditionAddOnTokenRefreshed)
	if s := f.secret(t, "one-hub-kubeconfig"); len(s.Data["token"])+len(s.Data["serviceaccount_uid"]) > 0 || len(s.Data["tls.crt"]) == 0 {
		t.Error("the Secret holds what is left of the token")
	}
}
