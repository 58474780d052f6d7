package exchange_test

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	clientauthenticationv1 "k8s.io/client-go/pkg/apis/clientauthentication/v1"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/exchange"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
)

// service is a token service over TLS, with the files that a workload has.
type service struct {
	*httptest.Server
	caFile, tokenFile string
	status            int
	body              string
	asked             atomic.Int32
	// again is called when the service is asked more than once, if it is set.
	again func()
}

func newService(t *testing.T) *service {
	t.Helper()
	s := &service{status: http.StatusOK, body: `{"access_token":"issued","token_type":"Bearer","expires_in":600}`}
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.asked.Add(1) > 1 && s.again != nil {
			s.again()
		}
		if r.URL.Path != "/token" || r.FormValue("subject_token") != "subject" {
			t.Errorf("asked for %s with %q", r.URL, r.FormValue("subject_token"))
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(s.status)
		_, _ = w.Write([]byte(s.body))
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // Failed handshakes are what some tests want.
	t.Cleanup(s.Close)
	dir := t.TempDir()
	s.caFile, s.tokenFile = filepath.Join(dir, "ca.crt"), filepath.Join(dir, "token")
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	for file, data := range map[string][]byte{s.caFile: ca, s.tokenFile: []byte("subject\n")} {
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// exec runs "exchange ARGS" and returns what it printed.
func exec(ctx context.Context, t *testing.T, info string, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	cmd := exchange.New(cli.Env{
		IOStreams: genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: io.Discard}, Name: "kubectl ocm",
		Clock: clock.RealClock{}, Kube: cli.NewKube(),
		Getenv: func(name string) string { return map[string]string{"KUBERNETES_EXEC_INFO": info}[name] },
	})
	cmd.SetArgs(args)
	cmd.SetOut(io.Discard)
	cmd.SetErr(io.Discard)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err := cmd.ExecuteContext(ctx)
	return out.String(), err
}

func TestCredential(t *testing.T) {
	t.Parallel()
	s := newService(t)
	for info, want := range map[string]string{
		"": "client.authentication.k8s.io/v1",
		`{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","spec":{"interactive":false}}`: "client.authentication.k8s.io/v1",
		`{"apiVersion":"client.authentication.k8s.io/v1beta1","kind":"ExecCredential","spec":{}}`:               "client.authentication.k8s.io/v1beta1",
	} {
		before := clock.RealClock{}.Now()
		out, err := exec(t.Context(), t, info, "credential", "--server", s.URL, "--ca-file", s.caFile, "--token-file", s.tokenFile)
		if err != nil {
			t.Fatal(err)
		}
		var got clientauthenticationv1.ExecCredential
		if err := json.Unmarshal([]byte(out), &got); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if got.APIVersion != want || got.Kind != "ExecCredential" || got.Status.Token != "issued" {
			t.Errorf("asked with %s: got %s", info, out)
		}
		// A little before the token's end, so that no request leaves too late.
		end := got.Status.ExpirationTimestamp
		if end.Sub(before) < 580*time.Second || end.Sub(clock.RealClock{}.Now()) > 600*time.Second {
			t.Errorf("it is said to last until %v, asked at %v", end, before)
		}
	}
}

// TestCredentialRefused: nothing is printed but what a client can use, and the
// exit code tells what kind of failure it was.
func TestCredentialRefused(t *testing.T) {
	t.Parallel()
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	// Each of these flags is given after the good ones, and wins.
	for _, tc := range []struct {
		name   string
		args   []string
		info   string
		status int
		body   string
		code   cli.Code
		word   string
		// silent is set where the service must not see the token.
		silent bool
	}{
		{name: "no flags", args: []string{"--server="}, code: cli.CodeUsage, word: "--server is missing", silent: true},
		{name: "in the clear", args: []string{"--server=http://hub.example.com"}, code: cli.CodeUsage, word: "https://", silent: true},
		{name: "no CA in the file", args: []string{"--ca-file", empty}, code: cli.CodeUsage, word: "no PEM certificate", silent: true},
		{name: "another CA", args: []string{"--ca-file="}, code: cli.CodeFailed, word: "unknown authority", silent: true},
		{name: "no token", args: []string{"--token-file", empty + "x"}, code: cli.CodeNotFound, word: "projected volume", silent: true},
		{name: "an empty token", args: []string{"--token-file", empty}, code: cli.CodeNotFound, word: "is empty", silent: true},
		{name: "a strange client", info: `{"apiVersion":"client.authentication.k8s.io/v9"}`, code: cli.CodeUsage, word: "/v1", silent: true},
		{name: "it is refused", status: 400, body: `{"error":"invalid_request","error_description":"Token validation failed (request id r1)"}`, code: cli.CodeFailed, word: "request id r1"},
		{name: "another audience", status: 400, body: `{"error":"invalid_target"}`, code: cli.CodeFailed, word: "--audience"},
		{name: "for now", status: 503, body: `{"error":"temporarily_unavailable"}`, code: cli.CodeTimeout, word: "try again"},
		{name: "another service", status: 404, body: `nothing here`, code: cli.CodeFailed, word: "--server"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := newService(t)
			s.status, s.body = tc.status, tc.body
			// A service that wants to be asked again ends the command when it is.
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			s.again = cancel
			good := []string{"credential", "--server", s.URL, "--ca-file", s.caFile, "--token-file", s.tokenFile}
			out, err := exec(ctx, t, tc.info, append(good, tc.args...)...)
			if err == nil || out != "" || cli.ExitCode(err) != tc.code {
				t.Fatalf("printed %q, code %d: %v", out, cli.ExitCode(err), err)
			}
			if text := err.Error() + " " + cli.HintOf(cli.Explain(err)); !strings.Contains(text, tc.word) || strings.Contains(text, "subject") {
				t.Errorf("no %q in: %s", tc.word, text)
			}
			if tc.silent == (s.asked.Load() > 0) {
				t.Errorf("the token was sent %d times", s.asked.Load())
			}
		})
	}
}
