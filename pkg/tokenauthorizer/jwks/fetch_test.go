package jwks_test

import (
	"crypto/x509"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwk"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/issuer"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/denial"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/jwks"
)

// TestAnswersThatAreRefused: what a server may not do.
func TestAnswersThatAreRefused(t *testing.T) {
	t.Parallel()
	key := issuer.NewKey(t, jwk.ES256)
	elsewhere := issuer.NewProvider(t, key)
	redirect := func(to string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, http.StatusFound) }
	}
	for name, test := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"not found":     {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }, "404"},
		"server error":  {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }, "502"},
		"no content":    {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }, "204"},
		"unauthorized":  {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }, "configure a token file or a kubeconfig"},
		"another host":  {redirect(elsewhere.URL + issuer.KeysPath), "redirects to another server"},
		"plain http":    {redirect("http://127.0.0.1/keys"), "redirects to another server"},
		"redirect loop": {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path, http.StatusFound) }, "too many redirects"},
		"HTML":          {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }, "not a JSON Web Key Set"},
		"endless": {func(w http.ResponseWriter, _ *http.Request) {
			for range 64 {
				_, _ = w.Write(make([]byte, 1<<16))
			}
		}, "too large"},
		"huge header": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Huge", strings.Repeat("x", 1<<17))
		}, "header"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := issuer.NewProvider(t, key)
			p.Answer(test.answer)
			e := start(t, remote("c1", sharedIssuer, p))
			if err := e.status(t, "c1").Err; err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}

func TestRedirectOnOneHost(t *testing.T) {
	t.Parallel()
	key := issuer.NewKey(t, jwk.ES256)
	p := issuer.NewProvider(t, key)
	p.Answer(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/moved" {
			http.Redirect(w, r, "/moved", http.StatusMovedPermanently)
			return
		}
		_, _ = w.Write(issuer.JWKS(t, key))
	})
	e := start(t, remote("c1", sharedIssuer, p))
	e.verifies(t, sharedIssuer, key, "c1")
}

// TestServerIsVerified: the CA is the one that is configured, and it may rotate.
func TestServerIsVerified(t *testing.T) {
	t.Parallel()
	key := issuer.NewKey(t, jwk.ES256)
	p := issuer.NewProvider(t, key)
	file := filepath.Join(t.TempDir(), "ca.crt")
	cluster := remote("c1", sharedIssuer, p)
	cluster.Source.CA, cluster.Source.CAFile = nil, file
	e := start(t, cluster)
	if err := e.status(t, "c1").Err; !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no CA file: %v", err)
	}
	write(t, file, []byte("no certificate"))
	e.pass(t, time.Minute, time.Minute)
	if err := e.status(t, "c1").Err; err == nil || !strings.Contains(err.Error(), "no PEM certificate") {
		t.Errorf("an empty CA file: %v", err)
	}
	write(t, file, p.CA)
	e.pass(t, time.Minute, time.Minute)
	e.verifies(t, sharedIssuer, key, "c1")

	unknown := remote("c1", sharedIssuer, p)
	unknown.Source.CA = nil
	e = start(t, unknown)
	if _, ok := errors.AsType[x509.UnknownAuthorityError](e.status(t, "c1").Err); !ok {
		t.Errorf("a CA that the system does not know: %v", e.status(t, "c1").Err)
	}
}

// TestCredentialsStayAtHome: a credential goes to the server that it is for,
// whatever a discovery document says.
func TestCredentialsStayAtHome(t *testing.T) {
	t.Parallel()
	key := issuer.NewKey(t, jwk.ES256)
	home, keys := issuer.NewProvider(t, key), issuer.NewProvider(t, key)
	seen := make(chan string, 10)
	recorded := func(w http.ResponseWriter, r *http.Request) {
		seen <- r.Header.Get("Authorization")
		_, _ = w.Write(issuer.JWKS(t, key))
	}
	home.Answer(recorded)
	keys.Answer(recorded)
	token := filepath.Join(t.TempDir(), "token")
	write(t, token, []byte("secret\n"))
	kubeconfig := kubeconfigFor(t, home, "secret")
	ca := append(home.CA, keys.CA...)
	for name, test := range map[string]struct {
		source jwks.Source
		uri    string
		want   string
	}{
		"token, URI":            {jwks.Source{URI: home.URL + issuer.KeysPath, Auth: jwks.Auth{TokenFile: token}}, "", "Bearer secret"},
		"token, its own keys":   {jwks.Source{Discovery: &jwks.Discovery{}, Auth: jwks.Auth{TokenFile: token}}, home.URL + "/keys", "Bearer secret"},
		"token, keys elsewhere": {jwks.Source{Discovery: &jwks.Discovery{}, Auth: jwks.Auth{TokenFile: token}}, keys.URL + "/keys", ""},
		"kubeconfig, URI":       {jwks.Source{URI: home.URL + issuer.KeysPath, Auth: jwks.Auth{KubeconfigFile: kubeconfig}}, "", "Bearer secret"},
		"kubeconfig, other URI": {jwks.Source{URI: keys.URL + issuer.KeysPath, Auth: jwks.Auth{KubeconfigFile: kubeconfig}}, "", ""},
		// An API server's own address for its keys: asked where the kubeconfig says.
		"kubeconfig, discovery":      {jwks.Source{Discovery: &jwks.Discovery{}, Auth: jwks.Auth{KubeconfigFile: kubeconfig}}, "https://10.0.0.1:6443" + issuer.KeysPath, "Bearer secret"},
		"kubeconfig, keys elsewhere": {jwks.Source{Discovery: &jwks.Discovery{}, Auth: jwks.Auth{KubeconfigFile: kubeconfig}}, keys.URL + "/keys", ""},
	} {
		home.Describe(home.URL, test.uri)
		test.source.CA = ca
		e := start(t, jwks.Cluster{Name: "c1", Issuer: home.URL, Source: test.source})
		e.verifies(t, home.URL, key, "c1")
		if got := <-seen; got != test.want {
			t.Errorf("%s: authorization %q, want %q", name, got, test.want)
		}
	}
}

func TestCredentialsThatAreRefused(t *testing.T) {
	t.Parallel()
	p := issuer.NewProvider(t, issuer.NewKey(t, jwk.ES256))
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty")
	write(t, empty, []byte("\n"))
	insecure := filepath.Join(dir, "insecure")
	write(t, insecure, edit(t, kubeconfigFor(t, p, "secret"), func(c *clientcmdapi.Cluster) {
		c.InsecureSkipTLSVerify, c.CertificateAuthorityData = true, nil
	}))
	plain := filepath.Join(dir, "plain")
	write(t, plain, edit(t, kubeconfigFor(t, p, "secret"), func(c *clientcmdapi.Cluster) {
		c.Server, c.CertificateAuthorityData = "http://127.0.0.1", nil
	}))
	for name, test := range map[string]struct {
		auth jwks.Auth
		want string
	}{
		"no token file":         {jwks.Auth{TokenFile: filepath.Join(dir, "none")}, "no such file"},
		"empty token file":      {jwks.Auth{TokenFile: empty}, "is empty"},
		"no kubeconfig":         {jwks.Auth{KubeconfigFile: filepath.Join(dir, "none")}, "no such file"},
		"unverified kubeconfig": {jwks.Auth{KubeconfigFile: insecure}, "does not verify its server"},
		"plain kubeconfig":      {jwks.Auth{KubeconfigFile: plain}, "https://"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := remote("c1", sharedIssuer, p)
			cluster.Source.Auth = test.auth
			e := start(t, cluster)
			if err := e.status(t, "c1").Err; err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
	if got := p.Fetches(); got != 0 {
		t.Errorf("%d reads without a credential", got)
	}
}

func TestDiscovery(t *testing.T) {
	t.Parallel()
	key := issuer.NewKey(t, jwk.ES256)
	for name, test := range map[string]struct {
		issuer, url      string // of the cluster; {} is the provider's URL
		says, keys, want string // what the document says, and the error
	}{
		"issuer is the URL":    {issuer: "{}", says: "{}", keys: "{}/any"},
		"URL beside issuer":    {issuer: sharedIssuer, url: "{}", says: sharedIssuer, keys: "{}/any"},
		"whole URL":            {issuer: sharedIssuer, url: "{}" + issuer.DiscoveryPath, says: sharedIssuer, keys: "{}/any"},
		"another issuer":       {issuer: sharedIssuer, url: "{}", says: "https://evil.example.com", keys: "{}/any", want: "evil.example.com"},
		"almost the issuer":    {issuer: sharedIssuer, url: "{}", says: sharedIssuer + "/", keys: "{}/any", want: "cannot be used"},
		"no issuer":            {issuer: sharedIssuer, url: "{}", keys: "{}/any", want: "cannot be used"},
		"unprotected keys":     {issuer: "{}", says: "{}", keys: "http://127.0.0.1/keys", want: "must begin with https://"},
		"no keys":              {issuer: "{}", says: "{}", want: "must begin with https://"},
		"keys from the system": {issuer: "{}", says: "{}", keys: "file:///etc/passwd", want: "must begin with https://"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := issuer.NewProvider(t, key)
			at := func(s string) string { return strings.ReplaceAll(s, "{}", p.URL) }
			p.Describe(at(test.says), at(test.keys))
			e := start(t, jwks.Cluster{Name: "c1", Issuer: at(test.issuer), Source: jwks.Source{
				Discovery: &jwks.Discovery{URL: at(test.url)}, CA: p.CA,
			}})
			err := e.status(t, "c1").Err
			if test.want != "" {
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("error %v, want %q", err, test.want)
				}
				e.refuses(t, at(test.issuer), key.ID, denial.KeysUnavailable)
				return
			}
			if err != nil {
				t.Error(err)
			}
			e.verifies(t, at(test.issuer), key, "c1")
		})
	}
}

func write(t *testing.T, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func kubeconfigFor(t *testing.T, p *issuer.Provider, token string) string {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: p.URL, CertificateAuthorityData: p.CA}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "x"
	name := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, name); err != nil {
		t.Fatal(err)
	}
	return name
}

func edit(t *testing.T, kubeconfig string, change func(*clientcmdapi.Cluster)) []byte {
	t.Helper()
	config, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	change(config.Clusters["c"])
	data, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
