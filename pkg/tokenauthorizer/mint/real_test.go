package mint_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installation"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/denial"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/mint"
)

const patience = await.Patience

// counter counts the TokenRequests that leave for the hub.
type counter struct {
	base  http.RoundTripper
	count atomic.Int32
	// before is called before each, if it is set.
	before atomic.Pointer[func()]
}

func (c *counter) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/token") {
		c.count.Add(1)
		if before := c.before.Load(); before != nil {
			(*before)()
		}
	}
	return c.base.RoundTrip(r)
}

// realHub is a namespace of a real hub, and a minter with the least
// permissions for it.
type realHub struct {
	*mint.Minter
	admin     client.Client
	namespace string
	requests  *counter
}

func newRealHub(t *testing.T, accounts ...string) *realHub {
	t.Helper()
	h := &realHub{admin: cp.Client(t), requests: &counter{}}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "team-"}}
	if err := h.admin.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	h.namespace = namespace.Name
	for _, name := range accounts {
		h.create(t, name)
	}
	installation.Permit(t, h.admin, h.namespace, "reader", "recreated", "absent")
	config := cp.ConfigForAccount(t, names.HubNamespace, names.TokenAuthorizer)
	config.Wrap(func(base http.RoundTripper) http.RoundTripper {
		h.requests.base = base
		return h.requests
	})
	h.Minter = run(t, mint.Config{Hub: config}, settings(h.namespace))
	await.Condition(t, patience, "the namespace is watched", func(context.Context) (bool, error) {
		return h.Status()[0].Synced, nil
	}, func() any { return h.Status() })
	return h
}

func (h *realHub) create(t *testing.T, name string) string {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: name}}
	if err := h.admin.Create(t.Context(), account); err != nil {
		t.Fatal(err)
	}
	return string(account.UID)
}

func (h *realHub) remove(t *testing.T, name string) {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: name}}
	if err := h.admin.Delete(t.Context(), account); err != nil {
		t.Fatal(err)
	}
}

func (h *realHub) ask(cluster, name string) mint.Request {
	r := ask(cluster)
	r.Target.Namespace, r.Target.Name = h.namespace, name
	return r
}

// whoAmI asks the hub who an issued token is.
func whoAmI(ctx context.Context, t *testing.T, issued mint.Token) (authenticationv1.UserInfo, error) {
	t.Helper()
	review := &authenticationv1.SelfSubjectReview{}
	err := cp.ClientFor(t, cp.ConfigForToken(issued.Value)).Create(ctx, review)
	return review.Status.UserInfo, err
}

// TestThousandColdCalls: they make one TokenRequest, and all get its token.
func TestThousandColdCalls(t *testing.T) {
	t.Parallel()
	h := newRealHub(t, "reader")
	var callers sync.WaitGroup
	var mu sync.Mutex
	values := map[string]bool{}
	for range 1000 {
		callers.Go(func() {
			issued, _, err := h.Mint(t.Context(), h.ask("c1", "reader"))
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			values[issued.Value] = true
		})
	}
	callers.Wait()
	if n := h.requests.count.Load(); n != 1 || len(values) != 1 {
		t.Errorf("%d TokenRequests and %d tokens", n, len(values))
	}
	issued, cached, err := h.Mint(t.Context(), h.ask("c1", "reader"))
	if err != nil || !cached {
		t.Fatalf("cached %v, %v", cached, err)
	}
	user, err := whoAmI(t.Context(), t, issued)
	if err != nil || user.Username != names.ServiceAccountUser(h.namespace, "reader") {
		t.Fatalf("the hub says %q, %v", user.Username, err)
	}
	// The hub's audit log has the same id.
	if ids := user.Extra["authentication.kubernetes.io/credential-id"]; len(ids) != 1 || ids[0] != "JTI="+issued.ID {
		t.Errorf("the hub knows the token as %v, we as %s", ids, issued.ID)
	}
}

// TestSameUIDFromTwoClusters never shares a token (weakness W1 of the peer).
func TestSameUIDFromTwoClusters(t *testing.T) {
	t.Parallel()
	h := newRealHub(t, "reader")
	ids := map[string]bool{}
	for _, cluster := range []string{"c1", "c2", "c1", "c2"} {
		issued, _, err := h.Mint(t.Context(), h.ask(cluster, "reader"))
		if err != nil {
			t.Fatal(err)
		}
		ids[issued.ID] = true
	}
	if len(ids) != 2 || h.requests.count.Load() != 2 {
		t.Errorf("%d tokens, %d TokenRequests", len(ids), h.requests.count.Load())
	}
}

// TestDeletedAndRecreated: the token of a ServiceAccount that is gone is
// forgotten at once, and the one that is created in its place is another.
func TestDeletedAndRecreated(t *testing.T) {
	t.Parallel()
	h := newRealHub(t, "recreated")
	first, _, err := h.Mint(t.Context(), h.ask("c1", "recreated"))
	if err != nil {
		t.Fatal(err)
	}
	h.remove(t, "recreated")
	await.Condition(t, patience, "the token is forgotten", func(ctx context.Context) (bool, error) {
		_, _, err := h.Mint(ctx, h.ask("c1", "recreated"))
		return err != nil && denial.Of(err).Reason == denial.TargetMissing, nil
	})
	h.create(t, "recreated")
	var second mint.Token
	// The watch ends the denial too: it takes less than the denial's 5 s.
	await.Success(t, patience, "there is a token again", func(ctx context.Context) error {
		var err error
		second, _, err = h.Mint(ctx, h.ask("c1", "recreated"))
		return err
	})
	if first.ID == second.ID {
		t.Error("it is the token of the deleted one")
	}
	if _, err := whoAmI(t.Context(), t, second); err != nil {
		t.Errorf("the new token: %v", err)
	}
}

// TestRecreatedBehindOurBack: between the watch and the TokenRequest the
// ServiceAccount becomes another; the precondition notices.
func TestRecreatedBehindOurBack(t *testing.T) {
	t.Parallel()
	h := newRealHub(t, "recreated")
	var once sync.Once
	var uid string
	behind := func() {
		once.Do(func() {
			h.remove(t, "recreated")
			uid = h.create(t, "recreated")
		})
	}
	h.requests.before.Store(&behind)
	issued, _, err := h.Mint(t.Context(), h.ask("c1", "recreated"))
	if err != nil {
		t.Fatal(err)
	}
	if n := h.requests.count.Load(); n != 2 {
		t.Errorf("%d TokenRequests, want the refused one and one more", n)
	}
	if user, err := whoAmI(t.Context(), t, issued); err != nil || user.UID != uid {
		t.Errorf("the token is for %s, want %s: %v", user.UID, uid, err)
	}
}

func TestTargetMissing(t *testing.T) {
	t.Parallel()
	h := newRealHub(t)
	for range 20 {
		_, _, err := h.Mint(t.Context(), h.ask("c1", "absent"))
		refused, ok := errors.AsType[*denial.Error](err)
		if !ok || refused.Reason != denial.TargetMissing || !strings.Contains(refused.Detail, h.namespace+"/absent") {
			t.Fatalf("got %v", err)
		}
	}
	if n := h.requests.count.Load(); n > 2 {
		t.Errorf("%d TokenRequests", n)
	}
}

// TestForbidden names the permission that is missing.
func TestForbidden(t *testing.T) {
	t.Parallel()
	h := newRealHub(t, "other")
	_, _, err := h.Mint(t.Context(), h.ask("c1", "other"))
	refused, ok := errors.AsType[*denial.Error](err)
	if !ok || refused.Reason != denial.HubForbidden {
		t.Fatalf("got %v", err)
	}
	if status := h.Status(); len(status) != 1 || !errors.Is(status[0].Err, refused) {
		t.Errorf("the status does not tell it: %+v", status)
	}
	for _, word := range []string{"Role", h.namespace, "serviceaccounts/token", `"other"`, "kubectl ocm exchange rbac"} {
		if !strings.Contains(refused.Detail, word) {
			t.Errorf("no %s in: %s", word, refused.Detail)
		}
	}
}

// TestShortened: the end of a token is what the hub says, not what was asked for.
func TestShortened(t *testing.T) {
	t.Parallel()
	h := newRealHub(t, "reader")
	r := h.ask("c1", "reader")
	r.Target.Expiration = 10 * time.Minute
	r.Target.Audiences = []string{"https://elsewhere.example.com"}
	issued, _, err := h.Mint(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if life := issued.Expires.Sub(issued.IssuedAt); life != 10*time.Minute {
		t.Errorf("a life of %v", life)
	}
	if _, err := whoAmI(t.Context(), t, issued); err == nil {
		t.Error("the hub takes a token for another audience")
	}
	r.Target.Expiration = time.Minute
	if _, _, err := h.Mint(t.Context(), r); denial.Of(err).Reason != denial.HubUnavailable {
		t.Errorf("a life that the hub refuses: %v", err)
	}
}

// TestNamespaceOnDemand: a target outside the known namespaces is watched once
// it is needed, and then its deletion is noticed.
func TestNamespaceOnDemand(t *testing.T) {
	t.Parallel()
	h := newRealHub(t, "recreated")
	h.Configure(settings())
	if _, _, err := h.Mint(t.Context(), h.ask("c1", "recreated")); err != nil {
		t.Fatal(err)
	}
	await.Condition(t, patience, "the namespace is watched", func(context.Context) (bool, error) {
		status := h.Status()
		return len(status) == 1 && status[0].Synced, nil
	}, func() any { return h.Status() })
	h.remove(t, "recreated")
	await.Condition(t, patience, "the token is forgotten", func(ctx context.Context) (bool, error) {
		_, _, err := h.Mint(ctx, h.ask("c1", "recreated"))
		return err != nil && denial.Of(err).Reason == denial.TargetMissing, nil
	})
}

// TestHubDown is an outage of the hub, not a bad credential: kept tokens go on,
// and when the hub is back there is nothing to wait for.
func TestHubDown(t *testing.T) {
	t.Parallel()
	hub := controlplane.Start(t)
	admin := hub.Client(t)
	for _, name := range []string{"reader", "other"} {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
		if err := admin.Create(t.Context(), account); err != nil {
			t.Fatal(err)
		}
	}
	e := run(t, mint.Config{Hub: hub.Config(t)}, settings("default"))
	exchanged := func(ctx context.Context, name string) (bool, error) {
		r := ask("c1")
		r.Target.Namespace, r.Target.Name = "default", name
		_, cached, err := e.Mint(ctx, r)
		return cached, err
	}
	if _, err := exchanged(t.Context(), "reader"); err != nil {
		t.Fatal(err)
	}
	hub.StopAPIServer(t)
	if cached, err := exchanged(t.Context(), "reader"); err != nil || !cached {
		t.Errorf("a kept token: cached %v, %v", cached, err)
	}
	_, err := exchanged(t.Context(), "other")
	refused, ok := errors.AsType[*denial.Error](err)
	if !ok || refused.Reason != denial.HubUnavailable || refused.Reason.Class() != denial.Unavailable || refused.RetryAfter == 0 {
		t.Errorf("got %v", err)
	}
	hub.StartAPIServer(t)
	await.Success(t, patience, "the hub mints again", func(ctx context.Context) error {
		_, err := exchanged(ctx, "other")
		return err
	})
}
