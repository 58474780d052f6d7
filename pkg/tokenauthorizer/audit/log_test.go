package audit_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/audit"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/authorizer"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/denial"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/mint"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/policy"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/subject"
)

const secret = "eyJhbGciOiJSUzI1NiJ9.secret.secret"

func event() authorizer.Event {
	return authorizer.Event{
		Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Took: 1500 * time.Microsecond,
		Origin: authorizer.Origin{RequestID: "r1", Method: "GET", Path: "/api/v1/pods?token=" + secret, Principal: "spiffe://mesh/proxy"},
		Decision: authorizer.Decision{
			Identity: subject.Identity{
				Cluster: "c1", Account: subject.Account{Namespace: "app", Name: "worker", UID: "u1"},
				Token: subject.Token{Issuer: "https://issuer", KeyID: "k1", ID: "j1", Audiences: []string{"https://hub"}},
				Bound: subject.Binding{Pod: subject.Object{Name: "p", UID: "pu"}, Node: subject.Object{Name: "n"}},
			},
			Grant: policy.Grant{Rule: "c1/allow[0]", Target: policy.Target{Namespace: "team", Name: "reader"}},
			Token: mint.Token{Value: secret, ID: "j2", Expires: time.Date(2026, 1, 2, 4, 4, 5, 0, time.UTC)},
		},
	}
}

// written returns the lines that the events leave.
func written(t *testing.T, c audit.Config, events ...authorizer.Event) []string {
	t.Helper()
	var out bytes.Buffer
	c.Writer = &out
	log, err := audit.New(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		log.Record(e)
	}
	end(t, log)
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
}

// end runs a log whose context has ended.
func end(t *testing.T, log *audit.Log) {
	t.Helper()
	ctx, cancel := contextOf(t)
	cancel()
	if err := log.Run(ctx); err != nil {
		t.Fatal(err)
	}
}

// TestLine holds the fields of a line, which are a promise.
func TestLine(t *testing.T) {
	t.Parallel()
	refused := event()
	refused.Err = denial.New(denial.NotAllowed, "no rule")
	refused.Decision.Grant, refused.Decision.Token = policy.Grant{}, mint.Token{}
	failed := event()
	failed.Err = denial.New(denial.HubUnavailable, "the hub is away")
	failed.Decision.Token = mint.Token{}
	unproven := authorizer.Event{Time: refused.Time, Err: denial.New(denial.Malformed, "%s", strings.Repeat("x", 5000))}
	var got []string
	for _, e := range []authorizer.Event{event(), refused, failed, unproven} {
		got = append(got, written(t, audit.Config{}, e)...)
	}
	subject := `"subject":{"cluster":"c1","namespace":"app","name":"worker","uid":"u1","pod":"p","podUID":"pu","node":"n","kid":"k1","jti":"j1","audiences":["https://hub"]}`
	caller := `"caller":{"principal":"spiffe://mesh/proxy","method":"GET","path":"/api/v1/pods"},"microseconds":1500}`
	want := []string{
		`{"time":"2026-01-02T03:04:05Z","requestID":"r1","decision":"allowed",` + subject +
			`,"grant":{"rule":"c1/allow[0]","namespace":"team","name":"reader","credentialID":"JTI=j2","expires":"2026-01-02T04:04:05Z"},` + caller,
		`{"time":"2026-01-02T03:04:05Z","requestID":"r1","decision":"denied","reason":"not_allowed","detail":"no rule",` + subject + `,` + caller,
		`{"time":"2026-01-02T03:04:05Z","requestID":"r1","decision":"error","reason":"hub_unavailable","detail":"the hub is away",` + subject +
			`,"grant":{"rule":"c1/allow[0]","namespace":"team","name":"reader"},` + caller,
		`{"time":"2026-01-02T03:04:05Z","decision":"denied","reason":"malformed","detail":"` + strings.Repeat("x", 1024) + `...","microseconds":0}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, line := range got {
		if strings.Contains(line, "secret") || !json.Valid([]byte(line)) {
			t.Errorf("got %s", line)
		}
	}
}

func TestHitsAreSampled(t *testing.T) {
	t.Parallel()
	hit := event()
	hit.Decision.Cached = true
	var many []authorizer.Event
	for range 1000 {
		many = append(many, hit)
	}
	for sample, want := range map[int]int{1: 1000, 100: 10, 0: 1} {
		lines := written(t, audit.Config{SampleHits: sample}, many...)
		if len(lines) != want || !strings.Contains(lines[0], `"sample":`) {
			t.Errorf("one of %d: %d lines, the first is %s", sample, len(lines), lines[0])
		}
	}
	if lines := written(t, audit.Config{SampleHits: -1}, many...); lines[0] != "" {
		t.Errorf("none: %d lines", len(lines))
	}
}

// TestDenialsPushNothingOut: whoever causes denials without end cannot keep the
// tokens that were issued meanwhile out of the log.
func TestDenialsPushNothingOut(t *testing.T) {
	t.Parallel()
	refused := event()
	refused.Err = denial.New(denial.Malformed, "junk")
	var events []authorizer.Event
	for range 100 {
		events = append(events, refused)
	}
	events = append(events, event())
	got := written(t, audit.Config{Buffer: 10}, events...)
	issued := func(line string) bool { return strings.Contains(line, `"decision":"allowed"`) }
	if len(got) != 11 || !slices.ContainsFunc(got, issued) {
		t.Errorf("%d lines, none of the issued token: %s", len(got), got)
	}
}

// TestBounded: what a managed cluster puts into a token is bounded.
func TestBounded(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 10_000)
	e := event()
	e.Decision.Identity.Token.ID, e.Decision.Identity.Account.UID = long, long
	e.Decision.Identity.Bound = subject.Binding{Pod: subject.Object{Name: long, UID: long}, Node: subject.Object{Name: long}}
	for range 1000 {
		e.Decision.Identity.Token.Audiences = append(e.Decision.Identity.Token.Audiences, long)
	}
	if got := written(t, audit.Config{}, e); len(got) != 1 || len(got[0]) > 20_000 {
		t.Errorf("a line of %d bytes", len(got[0]))
	}
}

// TestSlowWriter: nobody waits for it, and what is lost is counted.
func TestSlowWriter(t *testing.T) {
	t.Parallel()
	metrics := prometheus.NewRegistry()
	reader, writer := io.Pipe()
	log, err := audit.New(audit.Config{Writer: writer, Buffer: 10, Metrics: metrics})
	if err != nil {
		t.Fatal(err)
	}
	for range 25 {
		log.Record(event())
	}
	if n := lines(t, metrics, "dropped"); n != 15 {
		t.Errorf("%v lines were dropped", n)
	}
	var reading sync.WaitGroup
	reading.Go(func() {
		if data, err := io.ReadAll(reader); err != nil || bytes.Count(data, []byte("\n")) != 10 {
			t.Errorf("read %d lines, %v", bytes.Count(data, []byte("\n")), err)
		}
	})
	end(t, log)
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	reading.Wait()
	if n := lines(t, metrics, "written"); n != 10 {
		t.Errorf("%v lines were written", n)
	}
}

func lines(t *testing.T, metrics prometheus.Gatherer, result string) float64 {
	t.Helper()
	families, err := metrics.Gather()
	if err != nil || len(families) != 1 || families[0].GetName() != "ocm_extauthz_audit_lines_total" {
		t.Fatal(families, err)
	}
	for _, m := range families[0].GetMetric() {
		if m.GetLabel()[0].GetValue() == result {
			return m.GetCounter().GetValue()
		}
	}
	return -1
}

// TestBrokenWriter: requests go on, and what is lost is counted.
func TestBrokenWriter(t *testing.T) {
	t.Parallel()
	reader, writer := io.Pipe()
	if err := reader.CloseWithError(errors.New("the disk is full")); err != nil {
		t.Fatal(err)
	}
	metrics := prometheus.NewRegistry()
	var told string
	log, err := audit.New(audit.Config{Writer: writer, Metrics: metrics, Log: funcr.New(func(_, args string) { told = args }, funcr.Options{})})
	if err != nil {
		t.Fatal(err)
	}
	log.Record(event())
	log.Record(event())
	end(t, log)
	if n := lines(t, metrics, "dropped"); n != 2 || !strings.Contains(told, "the disk is full") {
		t.Errorf("%v lines were dropped; told %q", n, told)
	}
	if _, err := audit.New(audit.Config{}); err == nil {
		t.Error("a log without a writer")
	}
}

// TestHitsCostNothing: the warm path allocates nothing for the log.
func TestHitsCostNothing(t *testing.T) { //nolint:paralleltest // AllocsPerRun counts for the whole process
	log, err := audit.New(audit.Config{Writer: io.Discard, SampleHits: 1_000_000})
	if err != nil {
		t.Fatal(err)
	}
	hit := event()
	hit.Decision.Cached = true
	if n := testing.AllocsPerRun(1000, func() { log.Record(hit) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
