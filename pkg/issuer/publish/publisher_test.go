package publish_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwk"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/issuer/publish"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/interrupt"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/issuer"
)

// served is the key set of the real API server.
func served(t *testing.T) []map[string]any {
	t.Helper()
	source, err := publish.NewSource(plane.Config(t), client.ObjectKey{})
	if err != nil {
		t.Fatal(err)
	}
	read, err := source.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var set struct{ Keys []map[string]any }
	if err := json.Unmarshal(read.KeySet.JSON, &set); err != nil {
		t.Fatal(err)
	}
	return set.Keys
}

// publishedKeys are the ids of the keys on the hub.
func (p *place) publishedKeys(t *testing.T) []string {
	t.Helper()
	m := p.published(t)
	if m == nil {
		return nil
	}
	set, err := jwk.Parse([]byte(m.Data[names.IssuerKeyJWKS]))
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, key := range set.Keys {
		ids = append(ids, key.ID)
	}
	return ids
}

func TestPublishedOnceAndKept(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "kept")
	p.start(t)
	p.says(t, names.ReasonIssuerPublished, "https://")
	first := p.published(t)
	if first == nil || len(first.Data) != 4 || first.Data[names.IssuerKeyPublishedAt] != "2031-02-03T04:05:06Z" {
		t.Fatalf("published %+v", first)
	}
	if !strings.HasPrefix(first.Data[names.IssuerKeyIssuer], "https://") || len(p.publishedKeys(t)) != 1 {
		t.Errorf("published %v", first.Data)
	}
	if managers := first.ManagedFields; len(managers) != 1 || managers[0].Manager != publish.FieldManager {
		t.Errorf("owned by %+v", managers)
	}
	for n := range 3 {
		p.later(t)
		p.checks(t, "unchanged", float64(n+1))
	}
	if now := p.published(t); now.ResourceVersion != first.ResourceVersion {
		t.Error("written without a change")
	}
	if writes := p.writes.About(""); len(writes) != 1 {
		t.Errorf("wrote %v", writes)
	}
}

// TestEachKeyIsProven: the published proof holds for this cluster as the hub has
// it, stays while it holds, and is made again for a new membership.
func TestEachKeyIsProven(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "proven")
	stop := p.start(t)
	p.says(t, names.ReasonIssuerPublished)
	if d := p.decides(t); !d.Trusted() || len(d.Counting) != 1 {
		t.Fatalf("the hub decides %+v", d)
	}
	first := p.published(t)
	stop()
	p.writes = interrupt.Count(every)
	stop = p.start(t) // Another process keeps the proof, whose token has its own age.
	p.says(t, names.ReasonIssuerPublished)
	if now := p.published(t); now.ResourceVersion != first.ResourceVersion || len(p.writes.About("")) != 0 {
		t.Errorf("written without a change: %v", p.writes.About(""))
	}
	stop()
	if err := p.admin.Delete(t.Context(), p.member()); err != nil {
		t.Fatal(err)
	}
	p.start(t)
	p.says(t, names.ReasonHubRefusesIssuer, "ManagedCluster")
	if err := p.admin.Create(t.Context(), p.member()); err != nil {
		t.Fatal(err)
	}
	if d := p.decides(t); d.Rejection.Reason != names.ReasonKeysUnproven {
		t.Errorf("the proof of an earlier membership: %+v", d)
	}
	p.later(t)
	p.says(t, names.ReasonIssuerPublished)
	if d := p.decides(t); !d.Trusted() || p.published(t).Data[names.IssuerKeyProofs] == first.Data[names.IssuerKeyProofs] {
		t.Errorf("the hub decides %+v", d)
	}
}

// TestAForeignNamespaceProvesNothing: an agent outside of OCM's namespaces says
// what is wrong instead of publishing what the hub refuses.
func TestAForeignNamespaceProvesNothing(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "foreign")
	config := p.config(t)
	source, err := publish.NewSource(plane.Config(t), client.ObjectKey{Namespace: "default", Name: "publisher"})
	if err != nil {
		t.Fatal(err)
	}
	config.Source = source
	publisher, err := publish.New(config)
	if err != nil {
		t.Fatal(err)
	}
	run(t, publisher)
	p.says(t, names.ReasonSelfTestFailed, names.AgentNamespacePrefix)
}

func TestWrittenAgainWhenChanged(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "changed")
	p.start(t)
	p.says(t, names.ReasonIssuerPublished)
	right := p.published(t)
	for name, spoil := range map[string]func(*corev1.ConfigMap) error{
		"another key set": func(m *corev1.ConfigMap) error {
			m.Data[names.IssuerKeyJWKS] = string(issuer.JWKS(t, issuer.NewKey(t, "ES256")))
			return p.admin.Update(t.Context(), m)
		},
		"no time": func(m *corev1.ConfigMap) error {
			m.Data[names.IssuerKeyPublishedAt] = "once"
			return p.admin.Update(t.Context(), m)
		},
		"deleted": func(m *corev1.ConfigMap) error { return p.admin.Delete(t.Context(), m) },
	} {
		before, settled := p.counter(t, "published"), p.clock.settles.Load()
		if err := spoil(p.published(t)); err != nil {
			t.Fatal(err)
		}
		// The change comes by watch, while no time passes, and then it settles.
		eventually(t, name+" to be noticed", func() error {
			if p.clock.settles.Load() == settled {
				return errors.New("not yet")
			}
			return nil
		})
		p.clock.Step(publish.Settle)
		p.checks(t, "published", before+1)
		now := p.published(t)
		for _, key := range []string{names.IssuerKeyIssuer, names.IssuerKeyJWKS} {
			if now.Data[key] != right.Data[key] {
				t.Errorf("%s: %s is %q", name, key, now.Data[key])
			}
		}
	}
}

// TestRotation goes through the steps of an API server's rotation: the new key
// is served beside the old one before the API server signs with it.
func TestRotation(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "rotates")
	current, next := served(t), issuer.NewKey(t, "RS256")
	p.start(t)
	p.says(t, names.ReasonIssuerPublished)
	p.managed.set(keys, issuer.Set(t, append([]map[string]any{next.JWK(t)}, current...)...))
	p.later(t)
	p.checks(t, "published", 2)
	want := []string{fmt.Sprint(current[0]["kid"]), next.ID}
	if d := p.decides(t); len(d.Counting) != 1 || d.Counting[0].ID != want[0] || !slices.Equal(d.Unproven, want[1:]) {
		t.Errorf("a key that the cluster does not sign with yet: %+v", d)
	}
	p.says(t, names.ReasonIssuerPublished, "once this cluster signs with it", next.ID)
	slices.Sort(want)
	if got := p.publishedKeys(t); !slices.Equal(got, want) {
		t.Errorf("published %v, want %v", got, want)
	}
	// Another API server of the cluster lists them in another order.
	p.managed.set(keys, issuer.Set(t, append(slices.Clone(current), next.JWK(t))...))
	p.later(t)
	p.checks(t, "unchanged", 1)
	p.managed.reset()
	p.later(t)
	p.checks(t, "published", 3)
	if got := p.publishedKeys(t); len(got) != 1 {
		t.Errorf("published %v after the rotation", got)
	}
}

// TestKeysThatDoNotSign: an API server whose keys are elsewhere, as on EKS, has
// nothing of it published; what was, stays.
func TestKeysThatDoNotSign(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "elsewhere")
	p.managed.set(keys, issuer.JWKS(t, issuer.NewKey(t, "RS256")))
	p.start(t)
	p.says(t, names.ReasonSelfTestFailed, "tokens are signed with key")
	if m := p.published(t); m != nil {
		t.Errorf("published %v", m.Data)
	}
	p.managed.reset()
	p.later(t)
	p.says(t, names.ReasonIssuerPublished)
	before := p.published(t)

	key := served(t)[0]
	forged := issuer.NewKey(t, "RS256").JWK(t)
	forged["kid"] = key["kid"]
	for body, words := range map[string]string{
		string(issuer.Set(t, forged)): "the signature does not match",
		`{"keys":[]}`:                 "no usable key",
		`{`:                           "not a JSON Web Key Set",
	} {
		p.managed.set(keys, []byte(body))
		p.later(t)
		p.says(t, names.ReasonSelfTestFailed, words)
	}
	p.managed.reset()
	p.managed.set(discovery, []byte(`{"issuer":"https://oidc.eks.example.com/id/X"}`))
	p.later(t)
	p.says(t, names.ReasonSelfTestFailed, "https://oidc.eks.example.com/id/X")
	if now := p.published(t); now.ResourceVersion != before.ResourceVersion {
		t.Error("what was published was touched")
	}
}

func TestWithoutDiscovery(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "undiscovered")
	p.managed.set(discovery, nil)
	p.managed.set(keys, nil)
	p.start(t)
	p.says(t, names.ReasonKeysNotServed, "--service-account-issuer")
	p.managed.reset()
	p.managed.set(discovery, nil)
	p.later(t)
	p.says(t, names.ReasonIssuerPublished) // The token says the issuer.
	if m := p.published(t); !strings.HasPrefix(m.Data[names.IssuerKeyIssuer], "https://") {
		t.Errorf("published %v", m.Data)
	}
}

func TestAHubThatRefuses(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "refused")
	if err := p.admin.Delete(t.Context(), p.binding()); err != nil {
		t.Fatal(err)
	}
	p.start(t)
	p.says(t, names.ReasonHubRefusesIssuer, "the hub must be of this version")
	if err := p.admin.Create(t.Context(), p.binding()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it to be published", func() error {
		p.clock.Step(publish.Settle)
		if p.published(t) == nil {
			return errors.New("not yet")
		}
		return nil
	})
}

// TestRightsAreOfOneName: the right to create, limited to a name, is enough for
// server-side apply and for nothing else.
func TestRightsAreOfOneName(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "limited")
	agent := plane.ClientFor(t, plane.ConfigFor(t, names.AgentUser("limited", "a1"), names.ClusterGroup("limited"), "system:authenticated"))
	apply := func(namespace, name string) error {
		return agent.Apply(t.Context(), corev1ac.ConfigMap(name, namespace), client.FieldOwner("x"))
	}
	if err := apply("limited", names.IssuerConfigMap); err != nil {
		t.Errorf("its own: %v", err)
	}
	for _, refused := range []error{
		apply("limited", "other"), apply("default", names.IssuerConfigMap),
		agent.List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace("limited")),
		agent.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "limited", Name: "another"}}),
	} {
		if !apierrors.IsForbidden(refused) {
			t.Errorf("got %v", refused)
		}
	}
	// And on its own cluster it requests tokens of itself alone.
	other, err := publish.NewSource(plane.ConfigForAccount(t, p.account().Namespace, p.account().Name), client.ObjectKey{Namespace: p.account().Namespace, Name: "default"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Read(t.Context()); !apierrors.IsForbidden(err) {
		t.Errorf("a token of another ServiceAccount: %v", err)
	}
}

// TestCutOff: a publisher that dies with its write on the way is followed by one
// that finds it done.
func TestCutOff(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "cut")
	p.writes = interrupt.After(1, "", every)
	stop := p.start(t)
	p.says(t, names.ReasonHubRefusesIssuer)
	stop()
	first := p.published(t)
	p.writes = interrupt.Count(every)
	p.start(t)
	p.says(t, names.ReasonIssuerPublished)
	if writes := p.writes.About(""); len(writes) != 0 || p.published(t).ResourceVersion != first.ResourceVersion {
		t.Errorf("wrote %v", writes)
	}
}

func TestWithdrawal(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "withdrawn")
	stop := p.start(t)
	p.says(t, names.ReasonIssuerPublished)
	stop()
	for range 2 { // The second finds nothing to do.
		w, err := publish.NewWithdrawal(p.config(t))
		if err != nil {
			t.Fatal(err)
		}
		p.reports.withdrawn.Store(false)
		run(t, w)
		eventually(t, "the withdrawal", func() error {
			if !p.reports.withdrawn.Load() {
				return errors.New("not yet")
			}
			return nil
		})
		if p.published(t) != nil {
			t.Error("it is still published")
		}
	}
	if writes := p.writes.About(""); len(writes) != 2 {
		t.Errorf("wrote %v", writes)
	}
}

// TestTeller writes into a Klusterlet with the agent's rights, and only news.
func TestTeller(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "teller")
	p.klusterlet(t)
	writes := interrupt.Count(every)
	connection := plane.ConfigForAccount(t, p.account().Namespace, p.account().Name)
	connection.Wrap(writes.Wrap)
	agent := plane.ClientFor(t, connection)
	recorder := events.NewFakeRecorder(10)
	newTeller := func() *publish.Teller {
		return &publish.Teller{
			Klusterlet: p.cluster, Reader: agent, Writer: agent, Events: recorder, Account: p.account(), Clock: p.clock, Log: logr.Discard(),
		}
	}
	says := func(reason string) metav1.Condition {
		return metav1.Condition{Type: names.ConditionIssuerPublished, Status: metav1.ConditionFalse, Reason: reason, Message: "why"}
	}
	live := func() *metav1.Condition {
		var k operatorv1.Klusterlet
		if err := p.admin.Get(t.Context(), client.ObjectKey{Name: p.cluster}, &k); err != nil {
			t.Fatal(err)
		}
		return apimeta.FindStatusCondition(k.Status.Conditions, names.ConditionIssuerPublished)
	}
	teller := newTeller()
	for range 2 {
		teller.Report(t.Context(), says(names.ReasonKeysNotServed))
	}
	newTeller().Report(t.Context(), says(names.ReasonKeysNotServed))
	if n := len(writes.About("")); n != 1 {
		t.Errorf("%d writes", n)
	}
	if got := live(); got == nil || got.Reason != names.ReasonKeysNotServed || got.Message != "why" {
		t.Errorf("it says %+v", got)
	}
	teller.Report(t.Context(), says(names.ReasonSelfTestFailed))
	if got := <-recorder.Events; !strings.Contains(got, names.ReasonKeysNotServed) || !strings.Contains(got, "Warning") {
		t.Errorf("event %q", got)
	}
	teller.Withdrawn(t.Context())
	teller.Withdrawn(t.Context())
	if got := live(); got != nil {
		t.Errorf("it says %+v", got)
	}
	if n := len(writes.About("")); n != 3 {
		t.Errorf("%d writes", n)
	}
	// Without a Klusterlet, or the right to it, there are events alone.
	teller.Klusterlet = "none"
	teller.Report(t.Context(), says(names.ReasonKeysNotServed))
}
