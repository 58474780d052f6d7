package drivertest

import (
	"errors"
	"maps"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/scheme"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// patience is how long a hub may take to act on its own, and pace the polling interval.
const (
	patience = time.Minute
	pace     = 50 * time.Millisecond
)

// maxSteps is far more than a driver needs to say that it waits.
const maxSteps = 20

// run is a process that obtains a credential and may be replaced at any time.
type run struct {
	// begin returns the driver of a process that has just started.
	begin func() driver.Credential
	// stranger is the driver for another identity.
	stranger func() driver.Credential
	// stored is the Secret that an issued credential is kept in.
	stored func(*testing.T, *driver.Issued) driver.Data
	// grant and refuse do on the hub what decides on the request.
	grant, refuse func(*testing.T)

	credential driver.Credential
	pending    driver.Data
	hub        client.WithWatch
	// writes counts requests that change an object, with any verb and subresource,
	// tokens TokenRequests, which change none.
	writes, tokens atomic.Int32
}

// connect creates the client of the run, which counts its requests.
func (r *run) connect(t *testing.T, hub *rest.Config) {
	t.Helper()
	hub = rest.CopyConfig(hub)
	hub.Wrap(func(next http.RoundTripper) http.RoundTripper { return counting{r, next} })
	var err error
	if r.hub, err = client.NewWithWatch(hub, client.Options{Scheme: scheme.New()}); err != nil {
		t.Fatal(err)
	}
}

type counting struct {
	run  *run
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (c counting) RoundTrip(req *http.Request) (*http.Response, error) {
	switch {
	case req.Method == http.MethodGet:
	case strings.HasSuffix(req.URL.Path, "/token"):
		c.run.tokens.Add(1)
	default:
		c.run.writes.Add(1)
	}
	return c.next.RoundTrip(req)
}

// restart replaces the process: only the pending data survive.
func (r *run) restart() { r.credential = r.begin() }

func (r *run) step(t *testing.T) (driver.Step, error) {
	t.Helper()
	if r.credential == nil {
		r.restart()
	}
	step, err := r.credential.Obtain(t.Context(), r.hub, maps.Clone(r.pending))
	if err == nil {
		r.pending = step.Pending
	}
	return step, err
}

// must takes a step that may not fail.
func (r *run) must(t *testing.T, take func(*testing.T) (driver.Step, error)) driver.Step {
	t.Helper()
	step, err := take(t)
	if err != nil {
		t.Fatalf("step: %v", err)
	}
	return step
}

// untilWaiting takes steps until one waits or issues a credential.
func (r *run) untilWaiting(t *testing.T) (driver.Step, error) {
	t.Helper()
	for range maxSteps {
		step, err := r.step(t)
		switch {
		case err != nil:
			return step, err
		case step.Again:
			continue
		case step.Issued != nil:
			return step, nil
		case step.Waiting.Reason == "" || step.Waiting.Message == "":
			t.Fatalf("it waits without words: %+v", step.Waiting)
		case step.Watch == nil && step.After == 0:
			t.Fatalf("it waits without saying for what: %+v", step.Waiting)
		}
		return step, nil
	}
	t.Fatalf("%d steps and no end", maxSteps)
	return driver.Step{}, nil
}

func (r *run) untilIssued(t *testing.T) *driver.Issued {
	t.Helper()
	var waiting driver.Waiting
	for range int(patience / pace) {
		step := r.must(t, r.untilWaiting)
		if step.Issued != nil {
			return step.Issued
		}
		waiting = step.Waiting
		clock.RealClock{}.Sleep(pace)
	}
	t.Fatalf("nothing was issued, it waits for %+v", waiting)
	return nil
}

// obtain asks for a credential, has it granted, and returns it.
func (r *run) obtain(t *testing.T) *driver.Issued {
	t.Helper()
	if step, err := r.untilWaiting(t); err != nil || step.Issued != nil {
		t.Fatalf("with nothing granted it says %+v, %v", step, err)
	}
	r.grant(t)
	return r.untilIssued(t)
}

func distinguishesProblems(t *testing.T, r *run) {
	t.Helper()
	if _, err := r.begin().Inspect(nil); !errors.Is(err, credential.ErrMissing) {
		t.Errorf("nothing at all: got %v, want it to be missing", err)
	}
	issued := r.obtain(t)
	if _, err := r.stranger().Inspect(r.stored(t, issued)); !errors.Is(err, credential.ErrWrongIdentity) {
		t.Errorf("another's: got %v, want it to be of the wrong identity", err)
	}
	for _, file := range files(r.credential.User()) {
		broken := r.stored(t, issued)
		broken[file] = []byte("broken")
		if _, err := r.begin().Inspect(broken); !errors.Is(err, credential.ErrMalformed) {
			t.Errorf("a broken %s: got %v, want it to be malformed", file, err)
		}
	}
}

func storesFirst(t *testing.T, r *run) {
	t.Helper()
	for range maxSteps {
		stored, writes := r.pending, r.writes.Load()
		step := r.must(t, r.step)
		if r.writes.Load() > writes && len(stored) == 0 {
			t.Fatal("it wrote on the hub with nothing stored that could find it again")
		}
		if !step.Again {
			return
		}
	}
}

func asksOnce(t *testing.T, r *run) {
	t.Helper()
	for range maxSteps {
		r.must(t, r.step)
		r.restart()
	}
	writes, stored := r.writes.Load(), maps.Clone(r.pending)
	if writes > 1 {
		t.Errorf("it wrote %d times on the hub, want once at most", writes)
	}
	// A process that stopped between a write and storing what came of it takes
	// the same step again.
	for range maxSteps {
		r.pending = maps.Clone(stored)
		r.must(t, r.step)
		r.restart()
	}
	if got := r.writes.Load() - writes; got > 0 {
		t.Errorf("%d restarts made %d writes on the hub", maxSteps, got)
	}
}

func issues(t *testing.T, r *run) {
	t.Helper()
	issued := r.obtain(t)
	validity, err := r.credential.Inspect(r.stored(t, issued))
	if err != nil {
		t.Fatalf("it does not recognise what it brought: %v", err)
	}
	if want := issued.Validity; !validity.NotBefore.Equal(want.NotBefore) || !validity.NotAfter.Equal(want.NotAfter) ||
		validity.Unlimited != want.Unlimited || !validity.Unlimited && validity.Lifetime() <= 0 {
		t.Errorf("it is good %+v, inspected %+v", want, validity)
	}
	if writes, tokens := r.writes.Load(), r.tokens.Load(); writes+tokens > 1 {
		t.Errorf("it cost %d writes and %d TokenRequests, want one of them at most", writes, tokens)
	}
	for key := range issued.Data {
		if strings.Contains(key, "/") {
			t.Errorf("no Secret can have the key %s", key)
		}
	}
	checkUser(t, r.credential.User(), issued)
	checkReport(t, r.credential.Report(), issued.Validity)
}

// checkReport checks that the credential can be reported in words.
func checkReport(t *testing.T, report driver.Report, v credential.Validity) {
	t.Helper()
	if report.Event == "" {
		t.Error("no event records that it was issued")
	}
	if len(report.Conditions) == 0 {
		return
	}
	for _, words := range []driver.Waiting{report.Valid(v), report.Failed(driver.Waiting{Reason: "Why", Message: "because"})} {
		if words.Reason == "" || words.Message == "" {
			t.Errorf("a condition without words: %+v", words)
		}
	}
}

// checkUser checks that the kubeconfig names files that exist.
func checkUser(t *testing.T, user clientcmdapi.AuthInfo, issued *driver.Issued) {
	t.Helper()
	if len(user.ClientKeyData) > 0 || len(user.ClientCertificateData) > 0 || user.Token != "" || user.Password != "" {
		t.Error("the kubeconfig would hold the secret itself and not a file name")
	}
	for _, file := range files(user) {
		if len(issued.Data[file]) == 0 {
			t.Errorf("the kubeconfig would name a file %q that is not there", file)
		}
	}
}

// files returns the files that the user entry of a kubeconfig names.
func files(user clientcmdapi.AuthInfo) []string {
	var named []string
	for _, file := range []string{user.ClientCertificate, user.ClientKey, user.TokenFile} {
		if file != "" {
			named = append(named, file)
		}
	}
	return named
}

// issuesAgain: a process that stopped before it had stored what was issued loses
// nothing. It returns what was issued to both processes.
func issuesAgain(t *testing.T, r *run) (first, second *driver.Issued) {
	t.Helper()
	stored := maps.Clone(r.must(t, r.untilWaiting).Pending)
	r.grant(t)
	first = r.untilIssued(t)
	writes := r.writes.Load()
	r.restart()
	r.pending = stored
	second = r.untilIssued(t)
	if _, err := r.credential.Inspect(r.stored(t, second)); err != nil {
		t.Errorf("after a crash: %v", err)
	}
	if got := r.writes.Load() - writes; got > 0 {
		t.Errorf("after a crash it wrote %d times", got)
	}
	return first, second
}

// refused: a denial is reported and respected. It returns what is said first.
func refused(t *testing.T, r *run) (first driver.Step) {
	t.Helper()
	r.must(t, r.untilWaiting)
	r.refuse(t)
	r.restart()
	writes := r.writes.Load()
	for i := range maxSteps {
		step, err := r.untilWaiting(t)
		if step.Issued != nil || err == nil && !step.Failing {
			t.Fatalf("refused, it says %+v, %v", step, err)
		}
		if i == 0 {
			first = step
		}
		r.restart()
	}
	if got := r.writes.Load() - writes; got > 0 {
		t.Errorf("it wrote %d times after the denial", got)
	}
	return first
}

func (r *run) base() *run { return r }

// ofRun is a check of either suite that only needs the process.
func ofRun[R interface{ base() *run }](check func(*testing.T, *run)) func(*testing.T, R) {
	return func(t *testing.T, r R) {
		t.Helper()
		check(t, r.base())
	}
}
