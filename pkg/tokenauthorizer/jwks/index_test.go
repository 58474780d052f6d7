package jwks_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/sets"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwk"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/keytrust"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/issuer"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/jwks"
)

// refused begins the answer for a key that does not count.
const refused = "refused: "

// walk is a store to which random things happen, and what is true of its world.
type walk struct {
	*jwks.Store

	random  *rand.Rand
	clock   *clocktesting.FakeClock
	keys    []*issuer.Key
	configs []jwks.Cluster
	seen    map[string]keytrust.Candidate
	gone    sets.Set[string]
}

var (
	walkClusters = []string{"c1", "c2", "c3", "c4"}
	walkIssuers  = []string{sharedIssuer, "https://a.example.com", jwks.LegacyIssuer}
)

func newWalk(t *testing.T, seed uint64) *walk {
	t.Helper()
	w := &walk{
		random: rand.New(rand.NewPCG(seed, 0)),
		clock:  newEnv(t).clock, seen: map[string]keytrust.Candidate{}, gone: sets.New[string](),
	}
	for range 5 {
		w.keys = append(w.keys, issuer.NewKey(t, jwk.ES256))
	}
	w.Store = jwks.New(jwks.Config{Hub: true, Clock: w.clock, Gone: func(cluster string) { w.gone.Insert(cluster) }})
	w.configs = []jwks.Cluster{everyone()}
	if err := w.Configure(w.configs, nil); err != nil {
		t.Fatal(err)
	}
	w.HubSynced()
	return w
}

// some are up to three keys.
func (w *walk) some() []*issuer.Key {
	picked := slices.Clone(w.keys)
	w.random.Shuffle(len(picked), func(i, j int) { picked[i], picked[j] = picked[j], picked[i] })
	return picked[:w.random.IntN(4)]
}

// step does one thing and says what.
func (w *walk) step(t *testing.T) string {
	t.Helper()
	cluster, iss := walkClusters[w.random.IntN(len(walkClusters))], walkIssuers[w.random.IntN(2)]
	switch w.random.IntN(8) {
	case 0:
		w.Forget(cluster)
		delete(w.seen, cluster)
		return "forget " + cluster
	case 1, 2:
		return w.reconfigure(t)
	case 3:
		c := accepted(cluster)
		c.Accepted = false
		w.observe(keytrust.Candidate{Cluster: c, Data: map[string]string{}})
		return "deny " + cluster
	default:
		w.observe(candidate(t, cluster, iss, w.some()...))
		return fmt.Sprintf("%s publishes as %s", cluster, iss)
	}
}

func (w *walk) observe(c keytrust.Candidate) {
	_ = w.Observe(c) // It complains about keys that are shared or missing, as it should.
	w.seen[c.Cluster.Name] = c
}

// reconfigure gives every cluster an entry of another kind, or none.
func (w *walk) reconfigure(t *testing.T) string {
	t.Helper()
	configs := []jwks.Cluster{everyone()}
	for _, cluster := range walkClusters {
		keys := w.some()
		switch kind := w.random.IntN(4); {
		case kind == 0 && len(keys) > 0:
			configs = append(configs, inline(t, cluster, walkIssuers[w.random.IntN(2)], keys...))
		case kind == 1 && len(keys) > 0:
			configs = append(configs, jwks.Cluster{Name: cluster, Source: jwks.Source{Hub: true}, Pins: []string{keys[0].ID}})
		case kind == 2:
			configs = append(configs, jwks.Cluster{Name: cluster, Source: jwks.Source{Hub: true}, Legacy: true})
		}
	}
	if err := w.Configure(configs, nil); err != nil {
		return "refused configuration: " + err.Error()
	}
	w.configs = configs
	return "configure"
}

// fresh is a store that learned of the world all at once.
func (w *walk) fresh(t *testing.T) *jwks.Store {
	t.Helper()
	s := jwks.New(jwks.Config{Hub: true, Clock: w.clock})
	if err := s.Configure(w.configs, nil); err != nil {
		t.Fatal(err)
	}
	for _, c := range w.seen {
		_ = s.Observe(c) // As above.
	}
	s.HubSynced()
	return s
}

// answers are what s says about every key under every issuer.
func (w *walk) answers(t *testing.T, s *jwks.Store) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, iss := range walkIssuers {
		for i, key := range w.keys {
			at := fmt.Sprintf("key %d of %s", i, iss)
			found, err := s.Lookup(t.Context(), iss, key.ID)
			if err != nil {
				all[at] = refused + err.Error()
			}
			for _, k := range found {
				all[at] += k.Cluster + " "
			}
		}
	}
	return all
}

// owned are the keys of a cluster in answers.
func owned(answers map[string]string, cluster string) sets.Set[string] {
	keys := sets.New[string]()
	for at, answer := range answers {
		if !strings.HasPrefix(answer, refused) && slices.Contains(strings.Fields(answer), cluster) {
			keys.Insert(at)
		}
	}
	return keys
}

// TestChangesAreEnough: after each of many random changes the store says what one
// says that learned of everything at once, and the generation of a cluster has moved
// if, and only if, one of its keys went.
func TestChangesAreEnough(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			w := newWalk(t, seed)
			for i := range 100 {
				before, generations := w.answers(t, w.Store), map[string]uint64{}
				for _, cluster := range walkClusters {
					generations[cluster] = w.Generation(cluster)
				}
				w.gone.Clear()
				did := w.step(t)
				after, fresh := w.answers(t, w.Store), w.fresh(t)
				if diff := cmp.Diff(w.answers(t, fresh), after); diff != "" {
					t.Fatalf("step %d, %s (-at once +after the change):\n%s", i, did, diff)
				}
				if diff := cmp.Diff(status(fresh), status(w.Store)); diff != "" {
					t.Fatalf("step %d, %s: status (-at once +after the change):\n%s", i, did, diff)
				}
				for _, cluster := range walkClusters {
					was, is := generations[cluster], w.Generation(cluster)
					if (is == 0) != (fresh.Generation(cluster) == 0) || w.gone.Has(cluster) != (was != 0 && is == 0) {
						t.Fatalf("step %d, %s: generation of %s %d, gone: %v", i, did, cluster, is, w.gone.Has(cluster))
					}
					lost := owned(before, cluster).Difference(owned(after, cluster))
					if was != 0 && is != 0 && (was != is) != (lost.Len() > 0) {
						t.Fatalf("step %d, %s: %s lost %v, and its generation went from %d to %d", i, did, cluster, sets.List(lost), was, is)
					}
				}
			}
		})
	}
}

// status is that of s in comparable form.
func status(s *jwks.Store) []string {
	var all []string
	for _, c := range s.Status() {
		all = append(all, fmt.Sprintf("%+v", c))
	}
	return all
}

// TestAChangeCostsTheSame: what a change of keys allocates grows with the logarithm
// of the fleet at most, not with the fleet.
func TestAChangeCostsTheSame(t *testing.T) { //nolint:paralleltest // It counts what the process allocates.
	cost := func(clusters int) float64 {
		s, keys := fleet(t, clusters)
		sets := [][]byte{issuer.JWKS(t, keys[0]), issuer.JWKS(t, keys[1])}
		turn := 0
		return bytesPerRun(func() {
			turn++
			if err := s.TakeProven(accepted("cluster-0"), sharedIssuer, sets[turn%2]); err != nil {
				t.Fatal(err)
			}
		})
	}
	small, large := cost(100), cost(2000)
	t.Logf("%.0f bytes with 100 clusters, %.0f with 2,000", small, large)
	if large > 4*small {
		t.Errorf("a change allocates %.0f bytes with 100 clusters, and %.0f with 2,000", small, large)
	}
}
