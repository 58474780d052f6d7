package authorizer_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apis/tokenexchange/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwk"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installation"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/interrupt"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/authorizer"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/denial"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/jwks"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/mint"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/policy"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/subject"
)

const (
	issuer   = "https://kubernetes.default.svc.cluster.local"
	audience = "https://hub.example.com"
)

// keyring has the keys of real clusters.
type keyring map[string][]jwks.Key // By key id: all local clusters have one issuer.

func (k keyring) Lookup(_ context.Context, iss, kid string) ([]jwks.Key, error) {
	if iss != issuer {
		return nil, denial.New(denial.UnknownIssuer, "nobody has the issuer %q", iss)
	}
	if keys := k[kid]; len(keys) > 0 {
		return keys, nil
	}
	return nil, denial.New(denial.UnknownKey, "the issuer has no key %q", kid)
}

func (k keyring) Generation(string) uint64 { return 1 }

// add adds the keys that a cluster's API server serves.
func (k keyring) add(tb testing.TB, cluster string, cp *controlplane.ControlPlane) {
	tb.Helper()
	set, err := jwk.Parse(cp.KeySet(tb))
	if err != nil {
		tb.Fatal(err)
	}
	for _, key := range set.Keys {
		k[key.ID] = append(k[key.ID], jwks.Key{Key: key, Cluster: cluster})
	}
}

// world is an authorizer between a managed cluster c1 and a namespace of the
// hub, with the least permissions.
type world struct {
	*authorizer.Authorizer
	minter    *mint.Minter
	keys      keyring
	spec      policy.Spec
	managed   *controlplane.ControlPlane
	namespace string
	// requests are those for tokens that left for the hub.
	requests *interrupt.Writes
}

// newWorld has a namespace of the same name in both clusters, with a
// ServiceAccount "reader". The rules are tokensmith's unless some are given.
func newWorld(tb testing.TB, managed *controlplane.ControlPlane, allow ...v1alpha1.Rule) *world {
	tb.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "app-"}}
	create(tb, hub, namespace)
	w := &world{keys: keyring{}, managed: managed, namespace: namespace.Name}
	create(tb, hub, w.account("reader"))
	if managed != hub {
		create(tb, managed, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}})
		create(tb, managed, w.account("reader"))
	}
	w.keys.add(tb, "c1", managed)
	w.spec = policy.Spec{Cluster: "c1", Path: "clusters[0]", Allow: allow}
	if len(allow) == 0 {
		w.spec.Allow, w.spec.Open = []v1alpha1.Rule{policy.OpenRule()}, true
	}
	config := hub.ConfigForAccount(tb, names.HubNamespace, names.TokenAuthorizer)
	w.requests = interrupt.Count(func(write, _ string) bool { return strings.HasSuffix(write, "/token") })
	config.Wrap(w.requests.Wrap)
	installation.Permit(tb, hub.Client(tb), w.namespace, "reader", "unknown")
	var err error
	if w.minter, err = mint.New(mint.Config{Hub: config}); err != nil {
		tb.Fatal(err)
	}
	if w.Authorizer, err = authorizer.New(authorizer.Config{Minter: w.minter}); err != nil {
		tb.Fatal(err)
	}
	w.configure(tb, 1, &subject.Rules{Open: true, Skew: subject.DefaultSkew})
	ctx, cancel := context.WithCancel(context.WithoutCancel(tb.Context()))
	var running sync.WaitGroup
	running.Go(func() { _ = w.minter.Run(ctx) })
	tb.Cleanup(func() { cancel(); running.Wait() })
	return w
}

func (w *world) configure(tb testing.TB, generation uint64, token *subject.Rules) {
	tb.Helper()
	w.use(tb, "c1", subject.NewVerifier(w.keys, func(string) *subject.Rules { return token }, clock.RealClock{}), generation)
}

// use has tokens proven by verifier, which says that they are of cluster.
func (w *world) use(tb testing.TB, cluster string, verifier authorizer.Verifier, generation uint64) {
	tb.Helper()
	w.spec.Cluster = cluster
	rules, findings := policy.Compile(w.spec)
	if rules == nil {
		tb.Fatalf("%+v", findings)
	}
	w.minter.Configure(mint.Settings{
		Namespaces: []string{w.namespace},
		Clusters:   map[string]mint.ClusterSettings{cluster: {Generation: generation}},
	})
	w.Swap(authorizer.Snapshot{
		Verifier: verifier,
		Clusters: map[string]*authorizer.Cluster{cluster: {Rules: rules, Generation: generation}},
	})
}

func (w *world) account(name string) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
}

// token asks the managed cluster for a subject token of "reader".
func (w *world) token(tb testing.TB) string {
	tb.Helper()
	return w.managed.Token(tb, w.namespace, "reader", authenticationv1.TokenRequestSpec{})
}

func create(tb testing.TB, cp *controlplane.ControlPlane, o client.Object) {
	tb.Helper()
	if err := cp.Client(tb).Create(tb.Context(), o); err != nil {
		tb.Fatal(err)
	}
}

// whoAmI asks the hub who a token is.
func whoAmI(tb testing.TB, issued mint.Token) authenticationv1.UserInfo {
	tb.Helper()
	review := &authenticationv1.SelfSubjectReview{}
	if err := hub.ClientFor(tb, hub.ConfigForToken(issued.Value)).Create(tb.Context(), review); err != nil {
		tb.Fatal(err)
	}
	return review.Status.UserInfo
}

// TestGenerationBump: tokens of old rules are not handed out, whatever the new
// rules say.
func TestGenerationBump(t *testing.T) {
	t.Parallel()
	w := newWorld(t, hub)
	request := authorizer.Request{Token: w.token(t)}
	first, err := w.Authorize(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	w.configure(t, 2, &subject.Rules{Open: true, Skew: subject.DefaultSkew})
	second, err := w.Authorize(t.Context(), request)
	if err != nil || second.Cached || second.Token.ID == first.Token.ID {
		t.Errorf("under new rules: cached %v, %v", second.Cached, err)
	}
	w.spec.Allow, w.spec.Open = []v1alpha1.Rule{{Namespaces: []string{"elsewhere"}, MapTo: v1alpha1.Mapping{Namespace: w.namespace, Name: "reader"}}}, false
	w.configure(t, 3, &subject.Rules{Open: true, Skew: subject.DefaultSkew})
	if _, err := w.Authorize(t.Context(), request); err == nil || denial.Of(err).Reason != denial.NotAllowed {
		t.Errorf("once it is not allowed any more: %v", err)
	}
}

// TestRealChainAllocates at most 25 times when warm (issue 4, Budgets), with
// the real stages.
func TestRealChainAllocates(t *testing.T) { //nolint:paralleltest // AllocsPerRun counts for the whole process
	w := newWorld(t, hub)
	request := authorizer.Request{Token: w.token(t)}
	check := func() {
		if _, err := w.Authorize(t.Context(), request); err != nil {
			t.Fatal(err)
		}
	}
	check()
	if n := testing.AllocsPerRun(1000, check); n > 25 {
		t.Errorf("%v allocations", n)
	} else {
		t.Logf("%v allocations", n)
	}
}

// BenchmarkRealChain is a warm Authorize with the real stages.
func BenchmarkRealChain(b *testing.B) {
	w := newWorld(b, hub)
	request := authorizer.Request{Token: w.token(b)}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := w.Authorize(b.Context(), request); err != nil {
				b.Fatal(err)
			}
		}
	})
}
