package token_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/token"
)

// issuer is a hub that issues tokens by the bubble's clock, except while it is down.
type issuer struct {
	client.Client
	most   time.Duration
	down   func(time.Time) bool
	issued int
}

func (i *issuer) SubResource(string) client.SubResourceClient { return &issuing{issuer: i} }

type issuing struct {
	client.SubResourceClient
	issuer *issuer
}

func (i *issuing) Create(_ context.Context, o, sub client.Object, _ ...client.SubResourceCreateOption) error {
	request, ok := sub.(*authenticationv1.TokenRequest)
	now := clock.RealClock{}.Now()
	if !ok || i.issuer.down(now) {
		return errors.New("connection refused")
	}
	life := min(time.Duration(*request.Spec.ExpirationSeconds)*time.Second, i.issuer.most)
	payload, err := json.Marshal(map[string]any{
		"iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(life).Unix(),
		"kubernetes.io": map[string]any{"namespace": o.GetNamespace(), "serviceaccount": map[string]any{"name": o.GetName(), "uid": request.UID}},
	})
	i.issuer.issued++
	part := base64.RawURLEncoding.EncodeToString
	request.Status.Token = part([]byte("{}")) + "." + part(payload) + "." + part(fmt.Append(nil, i.issuer.issued))
	return err
}

// From ten minutes to a year, whatever the hub makes of the request, and with
// the hub down for a tenth of every life just when a renewal is due: the token
// that is held never lapses, and is renewed after 70 to 80 % of its life.
func TestNeverALapse(t *testing.T) {
	t.Parallel()
	const year = 365 * 24 * time.Hour
	for _, life := range []time.Duration{10 * time.Minute, 11 * time.Minute, time.Hour, 24 * time.Hour, 90 * 24 * time.Hour, year} {
		for _, most := range []time.Duration{year, 10 * time.Minute, 24 * time.Hour} {
			t.Run(fmt.Sprintf("%v of %v", life, most), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { live(t, life, most) })
			})
		}
	}
}

func live(t *testing.T, life, most time.Duration) {
	t.Helper()
	const renewals = 30
	var outage time.Time // The hub is down for a while from here.
	hub := &issuer{most: most, down: func(now time.Time) bool { return now.Before(outage) }}
	addOn := token.NewAddOn(token.Config{
		Cluster: "c1",
		AddOn: &addonv1beta1.ManagedClusterAddOn{
			ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "a"},
			Status:     addonv1beta1.ManagedClusterAddOnStatus{Conditions: said("True", "ServiceAccount c1/c1-a-agent (UID: u1) is ready")},
		},
		Registration: kubeClient("token", ownUser), ExpirationSeconds: int64(life / time.Second), Clock: clock.RealClock{},
	})
	now, sleep := clock.RealClock{}.Now, clock.RealClock{}.Sleep // The bubble's.
	held, failures := driver.Data(nil), 0
	for n := 0; n < renewals; {
		validity, problem := addOn.Inspect(held)
		facts := credential.Facts{Problem: problem, Validity: validity, RenewAt: credential.RenewAt(validity, credential.Tokens(), "c1/a")}
		if need, lapsed := credential.Unusable().Evaluate(facts, now()); lapsed && held != nil {
			t.Fatalf("after %d renewals of %v: %s", n, min(life, most), need.Message)
		}
		if _, due := credential.Due().Evaluate(facts, now()); !due {
			sleep(facts.RenewAt.Sub(now()))
			outage = now().Add(min(life, most) / 10)
			used := float64(now().Sub(validity.NotBefore)) / float64(validity.Lifetime())
			if used < 0.699 || used > 0.801 {
				t.Errorf("renewed after %.3f of its life", used)
			}
			continue
		}
		step, err := addOn.Obtain(t.Context(), hub, nil)
		if err != nil {
			failures++
			sleep(credential.Backoff{First: time.Second, Most: max(time.Minute, min(life, most)/100)}.Delay(failures, "c1/a"))
			continue
		}
		held, failures = step.Issued.Data, 0
		n++
	}
	if hub.issued != renewals {
		t.Errorf("%d tokens were issued for %d renewals", hub.issued, renewals)
	}
}
