package extauthz_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/bench/internal/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/bench/internal/measure"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installation"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/issuer"
)

const (
	binary  = "../../bin/kubectl-ocm"
	profile = "../../bin/extauthz-cpu.pprof"

	audience  = "https://hub.example.com"
	namespace = "app"
	// workloads have a token each.
	workloads = 100
	// pace is the load under which the times of answers are measured.
	pace     = 2000
	duration = 10 * time.Second
	hubUser  = "system:serviceaccount:" + names.HubNamespace + ":" + names.TokenAuthorizer
)

// now is the clock that a benchmark measures by.
var now clock.RealClock

// result is what one run showed.
type result struct {
	paced, full outcome
	cpu         time.Duration
	// idleKiB is before the first request, loadedKiB after the last.
	idleKiB, loadedKiB, peakKiB int64
}

// cached are the results by number of clusters.
var cached = map[int]*fleet.Once[result]{1: {}, 1000: {}}

// BenchmarkExtAuthz asks with tokens that were seen before, first at a pace and
// then as fast as answers come. However often Go wants to repeat it, it runs once.
func BenchmarkExtAuthz(b *testing.B) {
	for _, clusters := range []int{1, 1000} {
		b.Run(strconv.Itoa(clusters)+"-clusters", func(b *testing.B) {
			r := cached[clusters].Result(b, func(b *testing.B) *result { b.Helper(); return run(b, clusters) })
			milliseconds := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
			b.ReportMetric(milliseconds(r.paced.P50), "p50-ms")
			b.ReportMetric(milliseconds(r.paced.P99), "p99-ms")
			b.ReportMetric(milliseconds(r.paced.P999), "p99.9-ms")
			b.ReportMetric(r.full.perSecond(), "checks/s")
			b.ReportMetric(float64(r.cpu.Microseconds())/float64(r.full.Requests), "cpu-us/check")
			b.ReportMetric(float64(r.idleKiB)/1024, "idle-private-MiB")
			b.ReportMetric(float64(r.loadedKiB)/1024, "loaded-private-MiB")
			b.ReportMetric(float64(r.peakKiB)/1024, "private-MiB")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func run(b *testing.B, clusters int) *result {
	b.Helper()
	cp := controlplane.Start(b)
	tokens := prepare(b, cp)
	address := "127.0.0.1:" + measure.FreePort(b)
	process := measure.Start(b, binary, "extauthz", fleet.Kubeconfig(b, cp, hubUser),
		"--clusters-config="+configuration(b, cp, clusters), "--addr=127.0.0.1", "--port="+address[len("127.0.0.1:"):], "--pprof")
	r := &result{idleKiB: process.PrivateKiB(b)}
	l := load{Address: address, Tokens: tokens, Connections: 2, Streams: 1, Duration: time.Second}
	l.run(b) // The first request with each token mints.

	l.Streams, l.PerSecond, l.Duration = 64, pace, duration
	r.paced = l.run(b)

	l.PerSecond = 0
	before := process.CPU(b)
	profiled := make(chan error, 1)
	go func() { profiled <- takeProfile(b.Context()) }()
	r.full = l.run(b)
	r.cpu = process.CPU(b) - before
	if err := <-profiled; err != nil {
		b.Errorf("no profile: %v", err)
	}
	r.loadedKiB, r.peakKiB = process.PrivateKiB(b), process.PeakKiB(b)
	return r
}

// prepare makes the workloads, the rights of the authorizer for their targets,
// and their tokens. The hub is its own managed cluster here.
func prepare(b *testing.B, cp *controlplane.Own) []string {
	b.Helper()
	c := cp.Client(b)
	create := func(object client.Object) {
		if err := c.Create(b.Context(), object); err != nil {
			b.Fatal(err)
		}
	}
	create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	installation.Permit(b, c, namespace, "{name}")
	tokens := make([]string, workloads)
	for i := range tokens {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "workload-" + strconv.Itoa(i)}}
		create(account)
		tokens[i] = cp.Token(b, namespace, account.Name, authenticationv1.TokenRequestSpec{Audiences: []string{audience}})
	}
	return tokens
}

// configuration writes one with the hub as its own managed cluster, and others
// beside it that have two keys each.
func configuration(b *testing.B, cp *controlplane.Own, clusters int) string {
	b.Helper()
	entry := func(name string, keys []byte) map[string]any {
		return map[string]any{
			"name": name, "issuer": "https://kubernetes.default.svc.cluster.local",
			"keys":  map[string]any{"jwks": json.RawMessage(keys)},
			"allow": []any{map[string]any{"namespaces": []string{namespace}, "mapTo": map[string]any{"namespace": namespace, "name": "{name}"}}},
		}
	}
	all := []any{entry("cluster0", cp.KeySet(b))}
	for i := 1; i < clusters; i++ {
		all = append(all, entry(fleet.Name(i), issuer.JWKS(b, issuer.NewKey(b, "ES256"), issuer.NewKey(b, "ES256"))))
	}
	data, err := json.Marshal(map[string]any{"defaults": map[string]any{"audiences": []string{audience}}, "clusters": all})
	if err != nil {
		b.Fatal(err)
	}
	path := filepath.Join(b.TempDir(), "clusters.yaml")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		b.Fatal(err)
	}
	return path
}

// takeProfile keeps what the process does in the middle of the load.
func takeProfile(ctx context.Context) error {
	seconds := int(duration/time.Second) / 2
	request, err := http.NewRequestWithContext(ctx, http.MethodGet,
		fmt.Sprintf("http://127.0.0.1:6060/debug/pprof/profile?seconds=%d", seconds), nil)
	if err != nil {
		return err
	}
	response, err := (&http.Client{Timeout: time.Minute}).Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", response.Status, data)
	}
	return os.WriteFile(profile, data, 0o600)
}
