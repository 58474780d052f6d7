package subject_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwk"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/denial"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/jwks"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/subject"
)

const (
	// audience is what tokens must be for.
	audience = "https://hub.example.com"
	// issuer is that of every local cluster.
	issuer = "https://kubernetes.default.svc.cluster.local"
	// legacyIssuer is that of every Secret's token.
	legacyIssuer = jwks.LegacyIssuer
)

// keyring is a key store that is filled by hand.
type keyring struct {
	mu         sync.Mutex
	keys       map[string]map[string][]jwks.Key // By issuer and key id.
	clusters   map[string]bool
	generation atomic.Uint64
	lookups    atomic.Int64
	err        error
}

func (k *keyring) Lookup(_ context.Context, issuer, kid string) ([]jwks.Key, error) {
	k.lookups.Add(1)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.err != nil {
		return nil, k.err
	}
	kids, ok := k.keys[issuer]
	if !ok {
		return nil, denial.New(denial.UnknownIssuer, "nobody has the issuer %q", issuer)
	}
	keys, ok := kids[kid]
	if !ok {
		return nil, denial.New(denial.UnknownKey, "the issuer %q has no key %q", issuer, kid)
	}
	return keys, nil
}

// Generation has all clusters move together, but the one called "still".
func (k *keyring) Generation(cluster string) uint64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case !k.clusters[cluster]:
		return 0
	case cluster == "still":
		return 1
	default:
		return 1 + k.generation.Load()
	}
}

func (k *keyring) add(cluster, issuer string, keys ...jwk.Key) *keyring {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.keys == nil {
		k.keys, k.clusters = map[string]map[string][]jwks.Key{}, map[string]bool{}
	}
	k.clusters[cluster] = true
	if k.keys[issuer] == nil {
		k.keys[issuer] = map[string][]jwks.Key{}
	}
	for _, key := range keys {
		k.keys[issuer][key.ID] = append(k.keys[issuer][key.ID], jwks.Key{Key: key, Cluster: cluster})
	}
	return k
}

// fail makes every lookup end with err.
func (k *keyring) fail(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.err = err
}

// keysOf returns the keys that a cluster's API server serves.
func keysOf(tb testing.TB, cp *controlplane.ControlPlane) []jwk.Key {
	tb.Helper()
	set, err := jwk.Parse(cp.KeySet(tb))
	if err != nil {
		tb.Fatal(err)
	}
	return set.Keys
}

// strict are the rules of a cluster with a policy.
func strict() *subject.Rules {
	return &subject.Rules{Audiences: []string{audience}, MaxAge: subject.DefaultMaxAge, Skew: subject.DefaultSkew}
}

// always gives the same rules to every cluster.
func always(rules *subject.Rules) func(string) *subject.Rules {
	return func(string) *subject.Rules { return rules }
}

// verifierOf verifies the tokens of real clusters at the real time.
func verifierOf(keys subject.Keys, rules *subject.Rules) *subject.Verifier {
	return subject.NewVerifier(keys, always(rules), clock.RealClock{})
}

// wantReason fails unless err refuses for the reason.
func wantReason(tb testing.TB, err error, want denial.Reason) {
	tb.Helper()
	denied, ok := errors.AsType[*denial.Error](err)
	if !ok {
		tb.Fatalf("got %v, want a denied for %s", err, want)
	}
	if denied.Reason != want {
		tb.Errorf("refused for %v, want %s", denied, want)
	}
	if denied.Detail == "" {
		tb.Error("the denied has no detail")
	}
}

// workload is a ServiceAccount with what its tokens can be bound to.
type workload struct {
	cp      *controlplane.ControlPlane
	account corev1.ServiceAccount
	pod     corev1.Pod
	node    corev1.Node
	secret  corev1.Secret
}

// newWorkload makes one in a namespace of its own.
func newWorkload(tb testing.TB, cp *controlplane.ControlPlane) *workload {
	tb.Helper()
	namespace := corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "app-"}}
	create(tb, cp, &namespace)
	in := metav1.ObjectMeta{Namespace: namespace.Name, Name: "reader"}
	w := &workload{
		cp:      cp,
		account: corev1.ServiceAccount{ObjectMeta: in},
		node:    corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-of-" + namespace.Name}},
		secret:  corev1.Secret{ObjectMeta: in},
	}
	create(tb, cp, &w.account)
	create(tb, cp, &w.node)
	create(tb, cp, &w.secret)
	w.pod = corev1.Pod{ObjectMeta: in, Spec: corev1.PodSpec{
		ServiceAccountName: w.account.Name,
		NodeName:           w.node.Name,
		Containers:         []corev1.Container{{Name: "main", Image: "example.com/image"}},
	}}
	create(tb, cp, &w.pod)
	return w
}

func create(tb testing.TB, cp *controlplane.ControlPlane, o client.Object) {
	tb.Helper()
	if err := cp.Client(tb).Create(tb.Context(), o); err != nil {
		tb.Fatal(err)
	}
}

// token asks the API server for a token of the workload's account.
func (w *workload) token(tb testing.TB, spec authenticationv1.TokenRequestSpec) string {
	tb.Helper()
	return w.cp.Token(tb, w.account.Namespace, w.account.Name, spec)
}

// ours is the request of a token for our audience.
func ours() authenticationv1.TokenRequestSpec {
	return authenticationv1.TokenRequestSpec{Audiences: []string{audience}}
}

func toPod(w *workload) *authenticationv1.BoundObjectReference {
	return &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: w.pod.Name, UID: w.pod.UID}
}

func toSecret(w *workload) *authenticationv1.BoundObjectReference {
	return &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Secret", Name: w.secret.Name, UID: w.secret.UID}
}

// legacyToken returns the token that the controller manager puts into a Secret.
func (w *workload) legacyToken(tb testing.TB) string {
	tb.Helper()
	return w.cp.LegacyToken(tb, w.account.Namespace, w.account.Name)
}
