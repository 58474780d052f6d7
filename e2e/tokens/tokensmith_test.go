package tokens_test

import (
	"context"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
)

// tokensmithWorld is what tokensmith's design describes: two workload clusters, with the issuers
// of its "Configuration Example", and a management cluster, which is the hub.
type tokensmithWorld struct {
	c1, c2 *cluster
	// plane2 is the control plane of c2, which a test stops.
	plane2    *controlplane.Own
	namespace string
	config    string
}

// TestTokensmith walks through tokensmith's design with the real binary: its configuration
// example, both of its usage blocks, its validation flow, its benefits and its
// security section. Each subtest names the lines that it is about.
func TestTokensmith(t *testing.T) {
	t.Parallel()
	plane := controlplane.Start(t, controlplane.WithIssuer("https://10.96.0.1"))
	w := &tokensmithWorld{
		c1: newCluster(t), c2: newClusterOn(t, plane.ControlPlane), plane2: plane,
		namespace: "tokensmith",
	}
	target(t, w.namespace, "eso-sa")
	w.config = writeFile(t, "clusters.yaml", w.example(t))
	for _, step := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"Usage, New Mode: the command line and the configuration example", w.newMode},
		{"Usage, Legacy Mode: TokenReview by --workload-kubeconfig", w.legacyMode},
		{"Benefits, Compatibility: --clusters-config goes before --workload-kubeconfig", w.precedence},
		{"a file in tokensmith's form warns once, and --strict refuses it", w.strict},
		{"Configuration Loader: what is wrong is told at the start", w.invalid},
	} {
		t.Run(step.name, step.run)
	}
}

// example is tokensmith's configuration example with the keys of real clusters:
// as an object for one, and as JSON text for the other.
func (w *tokensmithWorld) example(t *testing.T) []byte {
	t.Helper()
	return fmt.Appendf(nil, `clusters:
  - name: workload-cluster-1
    issuer: %s
    jwks_data: %s

  - name: workload-cluster-2
    issuer: https://10.96.0.1
    jwks_data: '%s'
`, sharedIssuer, w.c1.KeySet(t), w.c2.KeySet(t))
}

// newMode has the flags of tokensmith's "New Mode (JWKS-based Multi-Cluster)".
func (w *tokensmithWorld) newMode(t *testing.T) {
	a := newAuthorizer(t, "--clusters-config="+w.config, "--token-expiration=3600", "--log-level=debug", "--log-format=json").ready(t)
	f := newFront(t, []*authorizer{a}, nil)
	user := serviceAccount(w.namespace, "eso-sa")

	t.Run("Objective 1: tokens of several clusters, each by its issuer", func(t *testing.T) {
		f.expect(t, w.c1.mint(t, w.namespace, "eso-sa"), user)
		f.expect(t, w.c2.mint(t, w.namespace, "eso-sa"), user)
	})
	t.Run("Objective 3: the same namespace in the management cluster", func(t *testing.T) {
		target(t, w.namespace+"-other", "eso-sa")
		f.expect(t, w.c1.mint(t, w.namespace+"-other", "eso-sa"), serviceAccount(w.namespace+"-other", "eso-sa"))
	})
	t.Run("Flow 1: a missing header, another scheme, an empty token", func(t *testing.T) {
		for _, headers := range []http.Header{{}, {"Authorization": {"Basic eDp5"}}, {"Authorization": {"Bearer "}}} {
			got := f.send(t.Context(), headers)
			if got.status != http.StatusUnauthorized || !strings.Contains(got.body, "Missing or invalid Authorization header") {
				t.Errorf("%v: %v", headers, got)
			}
		}
	})
	t.Run("Flow 3, Security 5: an issuer that no cluster has", func(t *testing.T) {
		c := newCluster(t, controlplane.WithIssuer("https://nobody.example.com"))
		got := f.whoAmI(t.Context(), c.mint(t, w.namespace, "eso-sa"))
		if got.status != http.StatusUnauthorized || !strings.Contains(got.body, "Token validation failed") || f.reason() != "unknown_issuer" {
			t.Errorf("%v %s", got, f.reason())
		}
	})
	t.Run("Flow 5, Security 1: a token of a cluster that is not configured, with an issuer that is", func(t *testing.T) {
		stranger := &cluster{ControlPlane: hub, admin: hub.Client(t)}
		f.refused(t, stranger.mint(t, w.namespace, "eso-sa"), http.StatusUnauthorized, "unknown_key")
	})
	t.Run("Flow 5: a signature that is not the key's", func(t *testing.T) {
		token := w.c1.mint(t, w.namespace, "eso-sa")
		other := w.c1.mint(t, w.namespace+"-other", "eso-sa")
		forged := token[:strings.LastIndex(token, ".")] + other[strings.LastIndex(other, "."):]
		f.refused(t, forged, http.StatusUnauthorized, "bad_signature")
	})
	t.Run("Flow 8: no ServiceAccount of that name in the management cluster", func(t *testing.T) {
		got := f.whoAmI(t.Context(), w.c1.mint(t, w.namespace, "nobody"))
		if got.status != http.StatusForbidden || !strings.Contains(got.body, "Token exchange failed") {
			t.Errorf("%v", got)
		}
	})
	t.Run("Flow 9: the upstream sees the other token and not the first", func(t *testing.T) {
		token := w.c1.mint(t, w.namespace, "eso-sa")
		got := f.whoAmI(t.Context(), token)
		if got.user.Username != user || got.user.UID == "" {
			t.Errorf("%v", got)
		}
	})
	t.Run("Security 4: the identity keeps its namespace, and some are never reached", func(t *testing.T) {
		f.refused(t, w.c1.mint(t, "kube-system", "default"), http.StatusForbidden, "target_denied")
		f.refused(t, w.c1.mint(t, "open-cluster-management-hub", "token-authorizer"), http.StatusForbidden, "target_denied")
	})
	t.Run("the health of the gRPC service", func(t *testing.T) { healthy(t, a) })
	t.Run("Objective 2, Benefits: without any connection to the workload clusters", func(t *testing.T) {
		token := w.c2.mint(t, w.namespace, "eso-sa")
		w.plane2.StopAPIServer(t)
		f.expect(t, token, user)
		w.plane2.StartAPIServer(t)
	})
}

func healthy(t *testing.T, a *authorizer) {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+a.grpc, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	for _, service := range []string{"", "envoy.service.auth.v3.Authorization"} {
		got, err := healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{Service: service})
		if err != nil || got.GetStatus() != healthpb.HealthCheckResponse_SERVING {
			t.Errorf("%q: %v %v", service, got.GetStatus(), err)
		}
	}
}

// legacyMode has the flags of tokensmith's "Legacy Mode (TokenReview)".
func (w *tokensmithWorld) legacyMode(t *testing.T) {
	kubeconfig := writeFile(t, "workload.kubeconfig", w.c1.Kubeconfig(t, "workload"))
	a := newAuthorizer(t, "--workload-kubeconfig="+kubeconfig).ready(t)
	f := newFront(t, []*authorizer{a}, nil)
	f.expect(t, w.c1.mint(t, w.namespace, "eso-sa"), serviceAccount(w.namespace, "eso-sa"))
	if got := f.whoAmI(t.Context(), w.c2.mint(t, w.namespace, "eso-sa")); got.status != http.StatusUnauthorized {
		t.Errorf("a token of another cluster: %v", got)
	}
	// A deleted ServiceAccount is noticed at once: that is what this mode can do.
	token := w.c1.mint(t, w.namespace, "leaving")
	target(t, w.namespace, "leaving")
	f.becomes(t, token, serviceAccount(w.namespace, "leaving"))
	if err := w.c1.admin.Delete(t.Context(), account(t, w.c1.admin, w.namespace, "leaving")); err != nil {
		t.Fatal(err)
	}
	f.ends(t, token, http.StatusUnauthorized)
	if !strings.Contains(a.logged(), "deprecated") {
		t.Error("nothing says that --workload-kubeconfig is deprecated")
	}
}

func (w *tokensmithWorld) precedence(t *testing.T) {
	// With TokenReview by c2, no token of c1 would be taken.
	kubeconfig := writeFile(t, "workload.kubeconfig", w.c2.Kubeconfig(t, "workload"))
	a := newAuthorizer(t, "--clusters-config="+w.config, "--workload-kubeconfig="+kubeconfig).ready(t)
	newFront(t, []*authorizer{a}, nil).expect(t, w.c1.mint(t, w.namespace, "eso-sa"), serviceAccount(w.namespace, "eso-sa"))
}

func (w *tokensmithWorld) strict(t *testing.T) {
	a := newAuthorizer(t, "--clusters-config="+w.config).ready(t)
	await.Completion(t, patience, func(context.Context) string {
		if strings.Contains(a.logged(), "Loaded the configuration") {
			return ""
		}
		return "the configuration is not loaded yet"
	})
	if got := strings.Count(a.logged(), "has no policy"); got != 1 {
		t.Errorf("the warning was given %d times:\n%s", got, tail(a.logged()))
	}
	refused := newAuthorizer(t, "--clusters-config="+w.config, "--strict")
	await.Completion(t, patience, func(context.Context) string {
		select {
		case <-refused.done:
			return ""
		default:
			return "it runs"
		}
	})
	if code := refused.cmd.ProcessState.ExitCode(); code == 0 || !strings.Contains(refused.logged(), "has no policy") {
		t.Errorf("exit code %d:\n%s", code, refused.logged())
	}
}

// invalid are the validations of tokensmith's section 1.
func (w *tokensmithWorld) invalid(t *testing.T) {
	key := string(w.c1.KeySet(t))
	for name, test := range map[string]struct{ config, want string }{
		"at least one cluster":       {"clusters: []", "at least one cluster"},
		"no duplicate names":         {fmt.Sprintf("clusters: [{name: a, issuer: https://a, jwks_data: %s}, {name: a, issuer: https://b, jwks_data: %[1]s}]", key), `called "a"`},
		"JWKSURI or JWKSData":        {"clusters: [{name: a, issuer: https://a}]", "jwks_uri"},
		"at least one key":           {"clusters: [{name: a, issuer: https://a, jwks_data: {keys: []}}]", "key"},
		"a name":                     {fmt.Sprintf("clusters: [{issuer: https://a, jwks_data: %s}]", key), "name"},
		"an issuer":                  {fmt.Sprintf("clusters: [{name: a, jwks_data: %s}]", key), "iss"},
		"one key under one issuer":   {fmt.Sprintf("clusters: [{name: a, issuer: https://a, jwks_data: %s}, {name: b, issuer: https://a, jwks_data: %[1]s}]", key), "is also a key of cluster"},
		"keys by https":              {"clusters: [{name: a, issuer: https://a, jwks_uri: 'http://a/keys'}]", "https"},
		"a file that does not exist": {"", "cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			path := writeFile(t, "clusters.yaml", []byte(test.config))
			if test.config == "" {
				path += ".missing"
			}
			kubeconfig := writeFile(t, "kubeconfig", hub.Kubeconfig(t, "hub"))
			ip := freeAddress(t)
			cmd := exec.CommandContext(t.Context(), binary(), "controller", "extauthz", "--kubeconfig="+kubeconfig,
				"--bind-address="+ip, "--addr="+ip, "--clusters-config="+path)
			out, err := cmd.CombinedOutput()
			if err == nil || !strings.Contains(string(out), test.want) {
				t.Errorf("%v:\n%s\nwant %q", err, out, test.want)
			}
		})
	}
}
