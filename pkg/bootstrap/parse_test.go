package bootstrap_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/bootstrap"
)

func TestParseServer(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"https://hub":                   "https://hub",
		"https://hub:6443/":             "https://hub:6443",
		"https://10.0.0.1:6443":         "https://10.0.0.1:6443",
		"https://[fd00::1]:6443":        "https://[fd00::1]:6443",
		"https://rancher/k8s/clusters/": "https://rancher/k8s/clusters",
		"http://hub":                    "",
		"hub:6443":                      "",
		"hub":                           "",
		"":                              "",
		"https://":                      "",
		"https:///path":                 "",
		"https://hub:port":              "",
		"https://hub:":                  "",
		"https://hub:0":                 "",
		"https://hub:65536":             "",
		"https://me:secret@hub":         "",
		"https://hub?x=y":               "",
		"https://hub#x":                 "",
		"https://hub /":                 "",
		"https://hub\n":                 "",
	} {
		u, err := bootstrap.ParseServer(in)
		switch {
		case want == "" && kindOf(err) != bootstrap.BadServer:
			t.Errorf("%q: got %v, error %v", in, u, err)
		case want == "" && strings.Contains(err.Error(), "secret"):
			t.Errorf("%q: the error shows the password: %v", in, err)
		case want != "" && (err != nil || u.String() != want):
			t.Errorf("%q: got %v, error %v", in, u, err)
		}
	}
}

func FuzzParseServer(f *testing.F) {
	f.Add("https://hub:6443/path")
	f.Fuzz(func(t *testing.T, in string) {
		u, err := bootstrap.ParseServer(in)
		if err != nil {
			return
		}
		again, err := bootstrap.ParseServer(u.String())
		if err != nil || again.String() != u.String() {
			t.Errorf("%q became %q, which became %v, %v", in, u, again, err)
		}
		if u.Scheme != "https" || u.Hostname() == "" || u.User != nil {
			t.Errorf("%q was taken as %v", in, u)
		}
	})
}

func TestLocalOnly(t *testing.T) {
	t.Parallel()
	for server, want := range map[string]bool{
		"https://127.0.0.1:6443": true, "https://127.1.2.3": true, "https://[::1]:6443": true,
		"https://localhost:6443": true, "https://LOCALHOST.": true, "https://a.localhost": true,
		"https://0.0.0.0:6443": true, "https://169.254.0.1": true,
		"https://kubernetes.default.svc": true, "https://x.y.svc.cluster.local:443": true,
		"https://kubernetes": true, "https://hub-control-plane:6443": true,
		"https://10.0.0.1:6443": false, "https://hub.example.com": false, "https://svc.example.com": false,
		"https://[fd00::1]": false,
	} {
		if got := bootstrap.LocalOnly(server); (got != "") != want {
			t.Errorf("%s: %q", server, got)
		}
	}
}

func jwt(payload string) string {
	return "eyJhbGciOiJSUzI1NiJ9." + base64.RawURLEncoding.EncodeToString([]byte(payload)) + ".c2lnbmF0dXJl"
}

func TestParseToken(t *testing.T) {
	t.Parallel()
	expires := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	bound := jwt(fmt.Sprintf(`{"sub":"system:serviceaccount:a:b","exp":%d,"kubernetes.io":{"secret":{"name":"join-token-x7k2p"}}}`, expires.Unix()))
	for _, tc := range []struct {
		name, in, id, user string
		expires            time.Time
		bad                bool
	}{
		{name: "a bound token", in: bound, id: "x7k2p", user: "system:serviceaccount:a:b", expires: expires},
		{name: "white space around it", in: "\n " + bound + "\n", id: "x7k2p", user: "system:serviceaccount:a:b", expires: expires},
		{name: "a bootstrap token", in: "ocmhub.0123456789abcdef", id: "ocmhub", user: "system:bootstrap:ocmhub"},
		{name: "another bearer token", in: "abcdef"},
		{name: "nothing", in: " \n", bad: true},
		{name: "a cut token", in: bound[:len(bound)-30], bad: true},
		{name: "a token without signature", in: bound[:strings.LastIndex(bound, ".")], bad: true},
		{name: "two lines", in: "abc\ndef", bad: true},
		{name: "a payload that is no JSON", in: jwt("{"), bad: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got, err := bootstrap.ParseToken(tc.in)
			if tc.bad {
				if kindOf(err) != bootstrap.BadToken {
					t.Errorf("got %v, error %v", got, err)
				}
				return
			}
			if err != nil || got.ID != tc.id || got.User != tc.user || !got.Expires.Equal(tc.expires) {
				t.Errorf("got %v %s %s, error %v", got, got.User, got.Expires, err)
			}
			if got.Secret() != strings.TrimSpace(tc.in) {
				t.Error("the token itself changed")
			}
		})
	}
}

func FuzzParseToken(f *testing.F) {
	f.Add("ocmhub.0123456789abcdef")
	f.Add(jwt(`{"exp":1}`))
	f.Fuzz(func(t *testing.T, in string) {
		token, err := bootstrap.ParseToken(in)
		if len(in) < 16 {
			return
		}
		for _, text := range []string{fmt.Sprint(err), fmt.Sprintf("%v %+v %#v", token, token, token)} {
			if strings.Contains(text, in) {
				t.Errorf("%q shows the token", text)
			}
		}
	})
}

func TestParseCAHash(t *testing.T) {
	t.Parallel()
	good := "sha256:" + strings.Repeat("0a", 32)
	for in, want := range map[string]string{
		good: good, " " + good + "\n": good, "sha256:" + strings.Repeat("0A", 32): good,
		strings.Repeat("0a", 32): "", "sha256:": "", good + "00": "", good[:len(good)-1]: "", "sha512:" + strings.Repeat("0a", 32): "", "": "",
	} {
		got, err := bootstrap.ParseCAHash(in)
		if string(got) != want || (want == "") != (kindOf(err) == bootstrap.BadHash) {
			t.Errorf("%q: got %q, error %v", in, got, err)
		}
	}
}

func TestClusterInfo(t *testing.T) {
	t.Parallel()
	want := bootstrap.ClusterInfo{Server: "https://hub:6443", CA: []byte("ca")}
	data, err := want.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := bootstrap.ParseClusterInfo(data)
	if err != nil || got.Server != want.Server || string(got.CA) != "ca" {
		t.Errorf("got %v, error %v", got, err)
	}
	for _, bad := range []string{"", "{}", "clusters: 1", "\x00"} {
		if _, err := bootstrap.ParseClusterInfo([]byte(bad)); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}
