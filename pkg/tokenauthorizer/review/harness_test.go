package review_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/denial"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/review"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/subject"
)

const (
	// cluster is what the managed cluster is called.
	cluster = "cluster1"
	// audience is what tokens must be for.
	audience = "https://hub.example.com"
	// apiAudience is what the API server calls itself.
	apiAudience = "https://kubernetes.default.svc.cluster.local"

	patience = await.Patience
)

// gate stands before the API server, counts the reviews, and answers in its
// place when it is told to.
type gate struct {
	*httptest.Server

	reviews atomic.Int64
	answer  atomic.Pointer[http.HandlerFunc]
}

func newGate(t *testing.T) *gate {
	t.Helper()
	target, err := url.Parse(cp.URL)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(cp.CAData)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	proxy := &httputil.ReverseProxy{
		Transport: transport,
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
	}
	g := &gate{}
	g.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/tokenreviews") {
			g.reviews.Add(1)
		}
		if answer := g.answer.Load(); answer != nil {
			(*answer)(w, r)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { g.Close(); transport.CloseIdleConnections() })
	return g
}

// answers has the gate answer by itself; nil has it ask the API server again.
func (g *gate) answers(answer http.HandlerFunc) {
	if answer == nil {
		g.answer.Store(nil)
		return
	}
	g.answer.Store(&answer)
}

// says is an answer to a review.
func says(t *testing.T, status authenticationv1.TokenReviewStatus) http.HandlerFunc {
	t.Helper()
	data, err := json.Marshal(authenticationv1.TokenReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "TokenReview"}, Status: status,
	})
	if err != nil {
		t.Fatal(err)
	}
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(data)
	}
}

// kubeconfig writes one that leads to the gate with a bearer token.
func (g *gate) kubeconfig(t *testing.T, token string) string {
	t.Helper()
	config := clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"c": {
			Server:                   g.URL,
			CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: g.Certificate().Raw}),
		}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": {Token: token}},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "x",
	}
	data, err := clientcmd.Write(config)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// newAccount makes a ServiceAccount in a namespace of its own.
func newAccount(t *testing.T) *corev1.ServiceAccount {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "app-"}}
	create(t, namespace)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: "reader"}}
	create(t, account)
	return account
}

// newReviewer makes a ServiceAccount that may create TokenReviews.
func newReviewer(t *testing.T) *corev1.ServiceAccount {
	t.Helper()
	account := newAccount(t)
	delegate(t, account)
	return account
}

// delegate lets account create TokenReviews.
func delegate(t *testing.T, account *corev1.ServiceAccount) {
	t.Helper()
	create(t, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "delegate-" + account.Namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:auth-delegator"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}},
	})
}

func create(t *testing.T, o client.Object) {
	t.Helper()
	if err := cp.Client(t).Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

// mint asks the API server for a token of account.
func mint(t *testing.T, account *corev1.ServiceAccount, spec authenticationv1.TokenRequestSpec) string {
	t.Helper()
	return cp.Token(t, account.Namespace, account.Name, spec)
}

// token is a token of account for some audiences; for the API server without any.
func token(t *testing.T, account *corev1.ServiceAccount, audiences ...string) string {
	t.Helper()
	return mint(t, account, authenticationv1.TokenRequestSpec{Audiences: audiences})
}

// identityOf is what a verifier would have found.
func identityOf(account *corev1.ServiceAccount) subject.Identity {
	return subject.Identity{
		Cluster: cluster,
		Account: subject.Account{Namespace: account.Namespace, Name: account.Name, UID: string(account.UID)},
		Token:   subject.Token{Audiences: []string{audience}},
	}
}

// wantReason fails unless err refuses for the reason.
func wantReason(t *testing.T, err error, want denial.Reason) {
	t.Helper()
	denied, ok := errors.AsType[*denial.Error](err)
	if !ok {
		t.Fatalf("got %v, want a denied for %s", err, want)
	}
	if denied.Reason != want {
		t.Fatalf("refused for %v, want %s", denied, want)
	}
}

// eventually waits until what the API server knows has reached all of it: it
// remembers tokens for ten seconds, and learns of new rights a moment later.
func eventually(t *testing.T, what string, done func() error) {
	t.Helper()
	await.Success(t, patience, what, func(context.Context) error { return done() })
}

// always are the settings of a cluster whose every request is reviewed.
func (g *gate) always(t *testing.T) review.Settings {
	t.Helper()
	return review.Settings{Mode: review.Always, KubeconfigFile: g.kubeconfig(t, token(t, newReviewer(t))), Audiences: []string{audience}}
}
