// Package imagepull_test tests the controllers of pull secrets together, on one
// control plane: one creates the Secret and attaches it, the other writes its token.
package imagepull_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/internal/content"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/token"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/clocks"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controllers"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installation"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/interrupt"
)

const (
	patience = await.Patience
	host     = "registry.example.com"
	audience = "registry"
)

// plane is shared: the controllers of each test see the namespace of theirs alone.
var plane *controlplane.ControlPlane

func TestMain(m *testing.M) { controlplane.Main(m, &plane) }

// user is the ServiceAccount of the controllers.
func (e *env) user() string {
	if len(e.config.Namespaces) > 0 {
		return "in-" + e.namespace
	}
	return names.ImagePullServiceAccount
}

// env is a namespace with controllers that see nothing else.
type env struct {
	admin     client.Client
	namespace string
	config    imagepull.Config
	clock     *clocks.Moved
	// writes are those of the controllers that were started last.
	writes *interrupt.Writes
	cached client.Reader
	// metrics are theirs as well.
	metrics *prometheus.Registry
	// before, if it is not nil, is called before each request of theirs.
	before func(*http.Request)
}

// hook is called before each request.
type hook struct {
	http.RoundTripper

	before func(*http.Request)
}

// RoundTrip implements http.RoundTripper.
func (h hook) RoundTrip(req *http.Request) (*http.Response, error) {
	h.before(req)
	return h.RoundTripper.RoundTrip(req)
}

func newEnv(t *testing.T) *env {
	t.Helper()
	e := &env{admin: plane.Client(t), clock: clocks.NewMoved(t)}
	e.config = imagepull.Config{
		Hosts: []string{host}, Attach: true, RefreshQPS: 1000, Clock: e.clock,
		Audience: audience, Token: token.Spec{TTL: 12 * time.Hour, Username: "serviceaccount", Format: content.DockerConfigJSON},
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "pull-"}}
	e.create(t, namespace)
	e.namespace = namespace.Name
	return e
}

// start runs the controllers until the test ends or stop is called, with the
// permissions that are installed.
func (e *env) start(t *testing.T) (stop func()) {
	t.Helper()
	return e.watched(t, interrupt.Count(strings.Contains))
}

// watched runs the controllers and notes their writes.
func (e *env) watched(t *testing.T, writes *interrupt.Writes) (stop func()) {
	t.Helper()
	installation.ImagePull(t, e.admin, manifests.ImagePull{
		ConfigMap: e.config.Lookup.ConfigMap, Namespaces: e.config.Namespaces, OnlyUsed: e.config.OnlyUsed,
		LooksUp: len(e.config.Lookup.Services)+len(e.config.Lookup.Routes) > 0,
	}, e.user())
	e.writes = writes
	connection := plane.ConfigForAccount(t, names.ImagePullNamespace, e.user())
	connection.Wrap(e.writes.Wrap)
	if e.before != nil {
		connection.Wrap(func(next http.RoundTripper) http.RoundTripper { return hook{RoundTripper: next, before: e.before} })
	}
	options := imagepull.CacheOptions(e.config)
	if options.DefaultNamespaces == nil {
		options.DefaultNamespaces = map[string]cache.Config{e.namespace: {}}
	}
	return controllers.Start(t, connection, manager.Options{Cache: options}, func(ctx context.Context, mgr manager.Manager) error {
		config := e.config
		e.metrics = prometheus.NewRegistry()
		config.Metrics = e.metrics
		e.cached = mgr.GetClient()
		return imagepull.Setup(ctx, mgr, config)
	})
}

func (e *env) create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		if err := e.admin.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
}

// temporary makes what is not in the namespace, until the test ends.
func (e *env) temporary(t *testing.T, object client.Object) {
	t.Helper()
	e.create(t, object)
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if err := e.admin.Delete(ctx, object); err != nil {
			t.Error(err)
		}
		err := wait.PollUntilContextTimeout(ctx, time.Second/50, patience, true, func(ctx context.Context) (bool, error) {
			err := e.admin.Get(ctx, client.ObjectKeyFromObject(object), object)
			return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
		})
		if err != nil {
			t.Errorf("wait until %s is gone: %v", object.GetName(), err)
		}
	})
}

// account makes a ServiceAccount that is opted in.
func (e *env) account(t *testing.T, name string) *corev1.ServiceAccount {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
		Namespace: e.namespace, Name: name, Annotations: map[string]string{names.AnnotationPullSecret: "true"},
	}}
	e.create(t, account)
	return account
}

func (e *env) merge(t *testing.T, object client.Object, patch string, options ...client.PatchOption) {
	t.Helper()
	if err := e.admin.Patch(t.Context(), object, client.RawPatch(types.MergePatchType, []byte(patch)), options...); err != nil {
		t.Fatal(err)
	}
}

// secret is the pull secret of a ServiceAccount, nil if there is none.
func (e *env) secret(ctx context.Context, t *testing.T, account *corev1.ServiceAccount) *corev1.Secret {
	t.Helper()
	var found corev1.Secret
	err := e.admin.Get(ctx, client.ObjectKey{Namespace: account.Namespace, Name: names.PullSecret(account.Name, account.UID)}, &found)
	if apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		t.Fatal(err)
	}
	return &found
}

// settled waits until ServiceAccounts have pull secrets for hosts and list them.
func (e *env) settled(t *testing.T, hosts []string, accounts ...*corev1.ServiceAccount) {
	t.Helper()
	await.Completion(t, patience, func(ctx context.Context) string {
		for _, account := range accounts {
			if missing := e.missing(ctx, t, account, hosts); missing != "" {
				return account.Name + ": " + missing
			}
		}
		return ""
	})
}

func (e *env) missing(ctx context.Context, t *testing.T, account *corev1.ServiceAccount, hosts []string) string {
	t.Helper()
	secret := e.secret(ctx, t, account)
	if secret == nil {
		return "no Secret"
	}
	if found := hostsOf(t, secret); fmt.Sprint(found) != fmt.Sprint(hosts) {
		return fmt.Sprintf("for %v", found)
	}
	if e.config.Attach && !lists(e.live(ctx, t, account), secret.Name) {
		return "not listed"
	}
	return ""
}

func (e *env) live(ctx context.Context, t *testing.T, account *corev1.ServiceAccount) *corev1.ServiceAccount {
	t.Helper()
	var live corev1.ServiceAccount
	if err := e.admin.Get(ctx, client.ObjectKeyFromObject(account), &live); err != nil {
		t.Fatal(err)
	}
	return &live
}

func lists(account *corev1.ServiceAccount, secret string) bool {
	for _, entry := range account.ImagePullSecrets {
		if entry.Name == secret {
			return true
		}
	}
	return false
}

// minted are the TokenRequests for pull secrets of the controllers started last.
func (e *env) minted() int {
	return len(e.writes.About("/namespaces/"+e.namespace+"/serviceaccounts/")) - e.attached()
}

// attached are the writes of ServiceAccounts.
func (e *env) attached() int {
	return len(e.writes.About("PATCH /api/v1/namespaces/" + e.namespace + "/serviceaccounts/"))
}
