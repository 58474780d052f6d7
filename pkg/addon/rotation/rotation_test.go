package rotation_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/inventory"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/rotation"
)

func at(hour int) *time.Time {
	t := time.Date(2025, 1, 1, hour, 0, 0, 0, time.UTC)
	return &t
}

func addOn(r inventory.Registration) []inventory.AddOn {
	r.Cluster, r.AddOn, r.Type = "c1", "a1", "kubeClient"
	return []inventory.AddOn{{Cluster: "c1", Name: "a1", Registrations: []inventory.Registration{r}}}
}

func TestPending(t *testing.T) {
	t.Parallel()
	const waits = "waits for the cluster's agent to replace the credential"
	for name, tc := range map[string]struct {
		earlier, now inventory.Registration
		want         string
	}{
		"the same credential":       {inventory.Registration{Expires: at(3)}, inventory.Registration{Expires: at(3)}, waits},
		"a new credential":          {inventory.Registration{Expires: at(3)}, inventory.Registration{Expires: at(4)}, ""},
		"one that expires earlier":  {inventory.Registration{Expires: at(3)}, inventory.Registration{Expires: at(2)}, ""},
		"the first credential":      {inventory.Registration{}, inventory.Registration{Expires: at(2)}, ""},
		"no credential":             {inventory.Registration{}, inventory.Registration{}, waits},
		"an open request":           {inventory.Registration{Expires: at(3)}, inventory.Registration{Expires: at(3), OpenRequest: "r1"}, "request r1 waits to be approved and signed"},
		"a message of the agent":    {inventory.Registration{Expires: at(3)}, inventory.Registration{Expires: at(3), OpenRequest: "r1", Message: "m"}, "m"},
		"a new one that is expired": {inventory.Registration{Expires: at(3)}, inventory.Registration{Expires: at(4), State: inventory.Expired}, waits},
		"a new one that fails":      {inventory.Registration{Expires: at(3)}, inventory.Registration{Expires: at(4), State: inventory.Failing}, waits},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := rotation.Pending(addOn(tc.earlier), addOn(tc.now))
			if len(got) == 0 && tc.want == "" {
				return
			}
			if len(got) != 1 || got[0].Message != tc.want {
				t.Errorf("got %v, want %q", got, tc.want)
			}
		})
	}
}

func TestHubTime(t *testing.T) {
	t.Parallel()
	ours := *at(5)
	for name, tc := range map[string]struct {
		header string
		want   time.Time
	}{
		"the hub's clock":      {at(2).Format(http.TimeFormat), at(2).Add(time.Second)},
		"a proxy drops header": {"", ours.Add(time.Second)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header()["Date"] = nil
				if tc.header != "" {
					w.Header().Set("Date", tc.header)
				}
			}))
			defer hub.Close()
			got, err := rotation.HubTime(t.Context(), &rest.Config{Host: hub.URL}, clocktesting.NewFakePassiveClock(ours))
			if err != nil || !got.Equal(tc.want) {
				t.Errorf("got %v, %v, want %v", got, err, tc.want)
			}
		})
	}
}
