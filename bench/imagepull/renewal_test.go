package imagepull_test

import (
	"context"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/token"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controllers"
)

const (
	onlyNamespace = "apps"
	// life is that of the tokens, all of which are renewed several times in two
	// hours: at the latest when 60 % are used, and what waits for its turn then.
	life   = time.Hour
	latest = life*60/100 + 5*time.Second
	// mostOverMean is how many times as many renewals as in the mean there may be in
	// one moment.
	mostOverMean = 3
)

// simulated is how many ServiceAccounts there are: the environment's
// BENCH_ACCOUNTS, or 1,000.
func simulated(t *testing.T) int {
	t.Helper()
	value := os.Getenv("BENCH_ACCOUNTS")
	if value == "" {
		return 1000
	}
	n, err := strconv.Atoi(value)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestRenewalsSpread runs the controllers for two hours that pass as fast as the
// machine allows, over an API server in memory. All tokens are issued in the first
// second, which is what spreads worst. Each is then renewed once at a time, in time,
// and no moment has many more renewals than the others.
func TestRenewalsSpread(t *testing.T) { //nolint:paralleltest // Its logger is that of the process.
	log.SetLogger(logr.Discard())
	synctest.Test(t, func(t *testing.T) {
		s, accounts := newAPIServer(t), simulated(t)
		populate(s, accounts)
		stop := controllers.Start(t, connection(s), options(), func(ctx context.Context, mgr manager.Manager) error {
			return imagepull.Setup(ctx, mgr, config())
		})
		began := now.Now()
		now.Sleep(2 * time.Hour)
		synctest.Wait() // What is under way ends.
		stop()
		renewals := s.renewals(t, accounts)
		want := map[string]int{
			"POST secrets": accounts, "PATCH serviceaccounts": accounts, // In the burst, and never again.
			"POST serviceaccounts/token": accounts + len(renewals), "PATCH secrets": accounts + len(renewals),
		}
		if !maps.Equal(s.calls, want) {
			t.Errorf("%v, want %v", s.calls, want)
		}
		// Before anything is renewed again. A moment is a second where there are 10,000
		// accounts, and as much longer as there are fewer.
		moment := 10_000 * time.Second / time.Duration(accounts)
		if most, mean := spread(t, renewals[:accounts], moment); most > mostOverMean*mean {
			t.Errorf("at most %.0f renewals in %s, more than %d times the mean of %.1f", most, moment, mostOverMean, mean)
		}
		// Later rounds overlap more and more.
		spread(t, slices.DeleteFunc(renewals, func(at time.Time) bool { return at.Sub(began) < time.Hour }), moment)
	})
}

// populate makes the ServiceAccounts, which are opted in.
func populate(s *apiServer, accounts int) {
	s.store("namespaces", onlyNamespace, object{
		"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": map[string]any{"name": onlyNamespace},
	})
	for i := range accounts {
		name := account(i).Name
		s.store("serviceaccounts", name, object{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": map[string]any{
			"namespace": onlyNamespace, "name": name, "annotations": map[string]any{names.AnnotationPullSecret: "true"},
		}})
	}
}

// renewals are the times of all tokens that replaced another one, which must have
// had at least 40 % of its life left.
func (s *apiServer) renewals(t *testing.T, accounts int) []time.Time {
	t.Helper()
	var times []time.Time
	last := map[string]time.Time{}
	var oldest time.Duration
	for _, token := range s.issued {
		if before, ok := last[token.secret]; ok {
			times = append(times, token.at)
			oldest = max(oldest, token.at.Sub(before))
		}
		last[token.secret] = token.at
	}
	if len(times) < accounts || len(last) != accounts || oldest > latest {
		t.Fatalf("%d renewals of %d tokens, at the latest after %s, want %s", len(times), len(last), oldest, latest)
	}
	t.Logf("%d renewals of %d tokens, at the latest %s after they were issued", len(times), len(last), oldest)
	return times
}

// spread returns how many of some renewals are made in a moment, at the most and in
// the mean.
func spread(t *testing.T, times []time.Time, moment time.Duration) (most, mean float64) {
	t.Helper()
	counts := map[time.Time]float64{}
	for _, at := range times {
		slot := at.Truncate(moment)
		counts[slot]++
		most = max(most, counts[slot])
	}
	span := times[len(times)-1].Sub(times[0])
	mean = float64(len(times)) * float64(moment) / float64(span)
	t.Logf("%d renewals in %s: in %s %.1f, at most %.0f", len(times), span, moment, mean, most)
	return most, mean
}

// config names the namespace, so that it is not watched itself: client-go leaves a
// goroutine behind when a watch of metadata ends, which a bubble does not forgive.
func config() imagepull.Config {
	return imagepull.Config{
		Namespaces: []string{onlyNamespace},
		Hosts:      []string{"registry.example.com"}, Audience: "registry.example.com", Attach: true, RefreshQPS: 20,
		Token: token.Spec{TTL: life, Username: "serviceaccount", Format: imagepull.Formats()[0]},
		Clock: clock.RealClock{}, Metrics: prometheus.NewRegistry(),
	}
}

// connection leads to the API server in memory.
func connection(s *apiServer) *rest.Config {
	return &rest.Config{Host: "http://api.example.com", QPS: -1, Transport: s, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
}

func options() manager.Options {
	return manager.Options{
		Cache: imagepull.CacheOptions(config()),
		MapperProvider: func(*rest.Config, *http.Client) (apimeta.RESTMapper, error) {
			mapper := apimeta.NewDefaultRESTMapper(nil)
			for _, kind := range []string{"Secret", "ServiceAccount"} {
				mapper.Add(corev1.SchemeGroupVersion.WithKind(kind), apimeta.RESTScopeNamespace)
			}
			mapper.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), apimeta.RESTScopeRoot)
			return mapper, nil
		},
	}
}
