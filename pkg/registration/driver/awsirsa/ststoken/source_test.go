package ststoken_test

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/ststoken"
	emulator "github.com/kubectl-ocm/kubectl-ocm/pkg/test/aws"
)

// isolate gives the process an AWS identity and no other configuration.
func isolate(t *testing.T) {
	t.Helper()
	for key, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "secret-of-the-test", "AWS_SESSION_TOKEN": "",
		"AWS_CONFIG_FILE": filepath.Join(t.TempDir(), "config"), "AWS_SHARED_CREDENTIALS_FILE": filepath.Join(t.TempDir(), "credentials"),
		"AWS_EC2_METADATA_DISABLED": "true", "AWS_PROFILE": "", "AWS_ENDPOINT_URL": "", "AWS_ENDPOINT_URL_STS": "",
	} {
		t.Setenv(key, value)
	}
}

func newSource(t *testing.T, c ststoken.Config) *ststoken.Source {
	t.Helper()
	s, err := ststoken.New(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// presigned takes a token apart.
func presigned(t *testing.T, token ststoken.Token) *url.URL {
	t.Helper()
	encoded, ok := strings.CutPrefix(token.Value, "k8s-aws-v1.")
	raw, err := base64.RawURLEncoding.DecodeString(encoded)
	if !ok || err != nil {
		t.Fatalf("%q is no token: %v", token.Value, err)
	}
	u, err := url.Parse(string(raw))
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestToken(t *testing.T) { //nolint:paralleltest // isolate sets environment variables.
	isolate(t)
	for region, host := range map[string]string{
		"us-west-2":      "sts.us-west-2.amazonaws.com",
		"us-gov-east-1":  "sts.us-gov-east-1.amazonaws.com",
		"cn-northwest-1": "sts.cn-northwest-1.amazonaws.com.cn",
	} {
		token, err := newSource(t, ststoken.Config{Cluster: "hub", Region: region, Clock: clocktesting.NewFakePassiveClock(time.Unix(1000, 0))}).Token(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		u := presigned(t, token)
		query := u.Query()
		if u.Scheme != "https" || u.Host != host || u.Path != "/" || query.Get("Action") != "GetCallerIdentity" {
			t.Errorf("%s: the token asks %s", region, u.Redacted())
		}
		if query.Get("X-Amz-Expires") != "60" || !strings.Contains(query.Get("X-Amz-SignedHeaders"), "x-k8s-aws-id") {
			t.Errorf("%s: the token is not bound to its cluster: %v", region, query)
		}
		if want := time.Unix(1000, 0).Add(14 * time.Minute); !token.Expires.Equal(want) {
			t.Errorf("%s: it expires at %v, want %v", region, token.Expires, want)
		}
	}
}

// TestTokenIsBoundToItsCluster: what differs between the tokens for two hubs is
// what is signed.
func TestTokenIsBoundToItsCluster(t *testing.T) { //nolint:paralleltest // isolate sets environment variables.
	isolate(t)
	clock := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	signature := map[string]bool{}
	for _, hub := range []string{"hub1", "hub2"} {
		token, err := newSource(t, ststoken.Config{Cluster: hub, Region: "us-west-2", Clock: clock}).Token(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		signature[presigned(t, token).Query().Get("X-Amz-Signature")] = true
	}
	if len(signature) != 2 {
		t.Error("a token for one hub is good for another")
	}
}

func TestTokenIsKeptUntilItsEnd(t *testing.T) { //nolint:paralleltest // isolate sets environment variables.
	isolate(t)
	start := time.Unix(1000, 0)
	clock := clocktesting.NewFakePassiveClock(start)
	s := newSource(t, ststoken.Config{Cluster: "hub", Region: "us-west-2", Clock: clock})
	expires := func() time.Duration {
		token, err := s.Token(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return token.Expires.Sub(start)
	}
	for _, step := range []struct{ at, want time.Duration }{
		{0, 14 * time.Minute}, {12*time.Minute + 59*time.Second, 14 * time.Minute}, {13 * time.Minute, 27 * time.Minute},
	} {
		clock.SetTime(start.Add(step.at))
		if got := expires(); got != step.want {
			t.Errorf("after %v the token expires at %v, want %v", step.at, got, step.want)
		}
	}
	clock.SetTime(start.Add(14 * time.Minute))
	s.Forget()
	if got := expires(); got != 28*time.Minute {
		t.Errorf("a forgotten token comes again: it expires at %v", got)
	}
}

// TestEndpointsAreNotOverridden: a token for another server than AWS's would be
// signed for whoever runs that.
func TestEndpointsAreNotOverridden(t *testing.T) { //nolint:paralleltest // It sets environment variables.
	for _, variable := range []string{"AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_STS"} {
		isolate(t)
		t.Setenv(variable, "http://127.0.0.1:1")
		if _, err := ststoken.New(t.Context(), ststoken.Config{Cluster: "hub", Region: "us-west-2"}); !errors.Is(err, ststoken.ErrEndpoint) {
			t.Errorf("%s: got %v", variable, err)
		}
	}
}

func TestNoIdentity(t *testing.T) {
	isolate(t)
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	_, err := newSource(t, ststoken.Config{Cluster: "hub", Region: "us-west-2", Clock: clocktesting.NewFakePassiveClock(time.Unix(1000, 0))}).Token(t.Context())
	failed, ok := errors.AsType[*ststoken.Error](err)
	if !ok || failed.Operation != "" || !strings.Contains(err.Error(), "service account") {
		t.Errorf("got %v", err)
	}
}

// TestTransport presents a token, and another one once the server refused it.
func TestTransport(t *testing.T) { //nolint:paralleltest // isolate sets environment variables.
	isolate(t)
	clock := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	s := newSource(t, ststoken.Config{Cluster: "hub", Region: "us-west-2", Clock: clock})
	var seen []string
	answer := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Header.Get("Authorization"))
		w.WriteHeader(answer)
	}))
	t.Cleanup(server.Close)
	c := &http.Client{Transport: s.Transport(http.DefaultTransport)}
	ask := func(authorization string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if authorization != "" {
			req.Header.Set("Authorization", authorization)
		}
		resp, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if req.Header.Get("Authorization") != authorization {
			t.Error("the caller's request was changed")
		}
	}
	ask("")
	answer = http.StatusUnauthorized
	ask("")
	clock.SetTime(time.Unix(1000, 0).Add(time.Second))
	before, err := s.Token(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ask("Basic mine")
	if len(seen) != 3 || !strings.HasPrefix(seen[0], "Bearer k8s-aws-v1.") || seen[0] != seen[1] || seen[2] != "Basic mine" {
		t.Errorf("presented %q", seen)
	}
	if want := time.Unix(1001, 0).Add(14 * time.Minute); !before.Expires.Equal(want) {
		t.Errorf("the refused token is used again until %v", before.Expires)
	}
}

// TestSessionsThatEndEarly: AWS ends the sessions of a role that is deleted and
// created again. Who is refused with one assumes the role again, but not at every
// try.
func TestSessionsThatEndEarly(t *testing.T) {
	t.Parallel()
	const (
		role  = "arn:aws:iam::111111111111:role/r"
		trust = `{"Version":"2012-10-17","Statement":{"Effect":"Allow","Principal":{"AWS":"arn:aws:iam::111111111111:user/u"},"Action":"sts:AssumeRole"}}`
	)
	cloud := emulator.Start(t)
	key := cloud.AddUser(t, "arn:aws:iam::111111111111:user/u", `{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"sts:AssumeRole","Resource":"*"}}`)
	cloud.AddRole(t, emulator.Role{ARN: role, Trust: trust})
	clock := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	s := newSource(t, ststoken.Config{Cluster: "hub", Region: "us-west-2", Role: role, Session: "test", Clock: clock, Load: func(context.Context, string) (aws.Config, error) {
		return aws.Config{
			Region: "us-west-2", HTTPClient: cloud.HTTPClient(t),
			Credentials: credentials.NewStaticCredentialsProvider(key.AccessKeyID, key.SecretAccessKey, ""),
		}, nil
	}})
	assumed := func() int {
		if _, err := s.Token(t.Context()); err != nil {
			t.Fatal(err)
		}
		count := 0
		for _, call := range cloud.Calls() {
			if call.Operation == "AssumeRole" {
				count++
			}
		}
		return count
	}
	if got := assumed(); got != 1 {
		t.Fatalf("it assumed the role %d times", got)
	}
	cloud.RemoveRole(role)
	cloud.AddRole(t, emulator.Role{ARN: role, Trust: trust})
	if caller, err := s.Caller(t.Context()); err == nil {
		t.Fatalf("the session of a deleted role is still %s", caller)
	}
	for range 3 {
		s.Forget()
		if got := assumed(); got != 1 {
			t.Errorf("refused at once, it assumed the role %d times", got)
		}
	}
	clock.SetTime(clock.Now().Add(time.Minute))
	for range 3 {
		s.Forget()
		if got := assumed(); got != 2 {
			t.Errorf("refused after a minute, it assumed the role %d times", got)
		}
	}
	if _, err := s.Caller(t.Context()); err != nil {
		t.Errorf("with a new session: %v", err)
	}
}
