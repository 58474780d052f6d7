package rotation

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/inventory"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// HubTime returns the next full second by the clock of the hub. The hub dates credentials by the
// same clock in full seconds, so a credential that was issued in this second is replaced too.
func HubTime(ctx context.Context, config *rest.Config, clk clock.PassiveClock) (time.Time, error) {
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return time.Time{}, err
	}
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return time.Time{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.JoinPath("version").String(), http.NoBody)
	if err != nil {
		return time.Time{}, err
	}
	resp, err := httpClient.Do(req)
	if err != nil {
		return time.Time{}, err
	}
	_ = resp.Body.Close()
	date, err := http.ParseTime(resp.Header.Get("Date"))
	if err != nil {
		// A proxy removed the header; our own clock is the next best.
		return clk.Now().Add(time.Second).UTC(), nil //nolint:nilerr // see above
	}
	return date.Add(time.Second).UTC(), nil
}

// Request requests that the agent replaces the credentials of an add-on that were issued
// before a time.
func Request(ctx context.Context, c client.Client, a inventory.AddOn, before time.Time) error {
	obj := a.Object.DeepCopy()
	base := client.MergeFrom(a.Object.DeepCopy())
	if obj.Annotations == nil {
		obj.Annotations = map[string]string{}
	}
	obj.Annotations[names.AnnotationRotate] = before.Format(time.RFC3339)
	return c.Patch(ctx, obj, base, client.FieldOwner(names.FieldManagerCLI))
}

// Pending returns the registrations that do not have another credential than earlier, when
// the add-ons were listed before the request. Each one has a message.
func Pending(earlier, now []inventory.AddOn) []inventory.Registration {
	type key struct{ cluster, addOn, kind, signer string }
	keyOf := func(r inventory.Registration) key { return key{r.Cluster, r.AddOn, r.Type, r.SignerName} }
	old := map[key]inventory.Registration{}
	for _, a := range earlier {
		for _, r := range a.Registrations {
			old[keyOf(r)] = r
		}
	}
	var out []inventory.Registration
	for _, a := range now {
		for _, r := range a.Registrations {
			if renewed(old[keyOf(r)], r) {
				continue
			}
			if r.OpenRequest != "" {
				r.Message = cmp.Or(r.Message, "request "+r.OpenRequest+" waits to be approved and signed")
			}
			r.Message = cmp.Or(r.Message, "waits for the cluster's agent to replace the credential")
			out = append(out, r)
		}
	}
	return out
}

// renewed reports whether a registration has a valid credential that is not the old one. With
// a shorter lifetime the new one can expire before the old one.
func renewed(old, now inventory.Registration) bool {
	if now.Expires == nil || now.State == inventory.Failing || now.State == inventory.Expired {
		return false
	}
	return old.Expires == nil || !now.Expires.Equal(*old.Expires)
}
