package addon_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/agent/addon"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/token"
)

// issuer is a driver whose credentials are times on a clock that the test moves.
type issuer struct {
	registration addonv1beta1.RegistrationConfig
	clock        *clocktesting.FakeClock
	life         time.Duration

	mu     sync.Mutex
	issued int
	// refuse makes so many requests fail after each that succeeded.
	refuse, refused int
}

// Inspect implements driver.AddOn.
func (i *issuer) Inspect(stored driver.Data) (credential.Validity, error) {
	var v credential.Validity
	if len(stored["token"]) == 0 {
		return v, credential.ErrMissing
	}
	return v, json.Unmarshal(stored["token"], &v)
}

// Declare implements driver.AddOn: the registration as it is.
func (i *issuer) Declare() addonv1beta1.RegistrationConfig { return i.registration }

// User implements driver.AddOn.
func (i *issuer) User() clientcmdapi.AuthInfo { return clientcmdapi.AuthInfo{TokenFile: "token"} }

// Renewal implements driver.AddOn.
func (i *issuer) Renewal() credential.RenewalPolicy { return credential.Tokens() }

// Report implements driver.AddOn.
func (i *issuer) Report() driver.Report { return (&token.AddOn{}).Report() }

// Obtain implements driver.AddOn.
func (i *issuer) Obtain(context.Context, client.Client, driver.Data) (driver.Step, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.refused < i.refuse {
		i.refused++
		return driver.Step{}, errors.New("not now")
	}
	i.refused = 0
	i.issued++
	v := credential.Validity{NotBefore: i.clock.Now(), NotAfter: i.clock.Now().Add(i.life)}
	token, err := json.Marshal(v)
	return driver.Step{Issued: &driver.Issued{Data: driver.Data{"token": token}, Validity: v}}, err
}

// TestNeverALapse runs tokens of every length through many renewals on a fake
// clock, with a hub that refuses some requests, and calls the reconciler no
// earlier than it asks for.
func TestNeverALapse(t *testing.T) {
	t.Parallel()
	for _, life := range []time.Duration{600 * time.Second, time.Hour, 24 * time.Hour, 30 * 24 * time.Hour, 365 * 24 * time.Hour} {
		t.Run(life.String(), func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, driver.Token)
			fake := clocktesting.NewFakeClock(now())
			hub := &issuer{clock: fake, life: life, refuse: 4}
			f.config.Clock = fake
			f.config.NewDriver = func(_ *addonv1beta1.ManagedClusterAddOn, registration addonv1beta1.RegistrationConfig) driver.AddOn {
				hub.registration = registration
				return hub
			}
			r := f.reconciler(t)
			registration := kubeClient()
			registration.KubeClient.Driver = string(driver.Token)
			f.register(t, "one", registration)
			f.live(t, r, fake, hub)
		})
	}
}

// live lets the reconciler live until it has renewed the credential many times.
func (f *fleet) live(t *testing.T, r *addon.Reconciler, fake *clocktesting.FakeClock, hub *issuer) {
	t.Helper()
	var last reconcile.Result
	key := types.NamespacedName{Namespace: f.cluster, Name: "one"}
	enough := 20
	if hub.life > 60*24*time.Hour {
		enough = 5 // It looks at them every day.
	}
	for rounds := 0; hub.issued < enough; rounds++ {
		if rounds > 20_000 {
			t.Fatalf("%d renewals after %d rounds, the last asked for %v", hub.issued, rounds, last.RequeueAfter)
		}
		before := hub.issued
		var err error
		last, err = r.Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
		if err != nil {
			t.Fatal(err)
		}
		if hub.issued > 0 && before == hub.issued {
			f.unexpired(t, fake, hub)
		}
		if last.RequeueAfter <= 100*time.Millisecond || hub.issued > before {
			pause(10 * time.Millisecond) // A cache may be behind.
		}
		fake.SetTime(fake.Now().Add(last.RequeueAfter))
		if hub.issued > 0 {
			f.unexpired(t, fake, hub)
		}
	}
}

// unexpired checks that the stored credential has a tenth of its life left.
func (f *fleet) unexpired(t *testing.T, fake *clocktesting.FakeClock, hub *issuer) {
	t.Helper()
	v, err := hub.Inspect(f.secret(t, names.AddOnHubKubeconfigSecret("one")).Data)
	if err != nil {
		t.Fatal(err)
	}
	if left := v.NotAfter.Sub(fake.Now()); left < hub.life/10 {
		t.Fatalf("after %d renewals a credential of %v has %v left", hub.issued, hub.life, left)
	}
}
