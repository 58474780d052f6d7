package imagepull_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/registry"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/token"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/clocks"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controllers"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/imageregistry"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installation"
)

const (
	patience = await.Patience
	audience = "registry.example.com"
	ttl      = 12 * time.Hour
)

// world is two namespaces with controllers that see nothing else. The hosts of
// their registries are in a ConfigMap.
type world struct {
	admin       client.Client
	clock       *clocks.Moved
	shop, other string
	hosts       *corev1.ConfigMap
	config      imagepull.Config
	// images is a directory that registries share.
	images string
}

// permitted is locked while the permissions are applied.
var permitted sync.Mutex

// newWorld makes the namespaces.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{admin: cluster.Client(t), clock: clocks.NewMoved(t), images: t.TempDir()}
	for _, namespace := range []*string{&w.shop, &w.other} {
		object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "pull-"}}
		w.create(t, object)
		*namespace = object.Name
	}
	w.hosts = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.shop, Name: "registries"}}
	w.create(t, w.hosts)
	w.config = imagepull.Config{
		Lookup: registry.Lookup{ConfigMap: client.ObjectKeyFromObject(w.hosts)}, Audience: audience, Attach: true, RefreshQPS: 1000,
		Token: token.Spec{TTL: ttl, Username: "serviceaccount", Format: imagepull.Formats()[0]},
		Clock: w.clock, Metrics: prometheus.NewRegistry(),
	}
	permitted.Lock()
	defer permitted.Unlock()
	installation.ImagePull(t, w.admin, manifests.ImagePull{ConfigMap: client.ObjectKeyFromObject(w.hosts)}, names.ImagePullServiceAccount)
	return w
}

// start runs the controllers, with the permissions that they are installed with.
func (w *world) start(t *testing.T) {
	t.Helper()
	config := w.config
	options := imagepull.CacheOptions(config)
	options.DefaultNamespaces = map[string]cache.Config{w.shop: {}, w.other: {}}
	connection := cluster.ConfigForAccount(t, names.ImagePullNamespace, names.ImagePullServiceAccount)
	controllers.Start(t, connection, manager.Options{Cache: options}, func(ctx context.Context, mgr manager.Manager) error {
		return imagepull.Setup(ctx, mgr, config)
	})
}

func (w *world) create(t *testing.T, object client.Object) {
	t.Helper()
	if err := w.admin.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

// use makes registries those of the pull secrets.
func (w *world) use(t *testing.T, registries ...*imageregistry.Server) {
	t.Helper()
	hosts := make([]string, len(registries))
	for i, r := range registries {
		hosts[i] = r.Address
	}
	patch := fmt.Sprintf(`{"data":{"hosts":%q}}`, strings.Join(hosts, " "))
	if err := w.admin.Patch(t.Context(), w.hosts.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
}

// account makes a ServiceAccount "app" that is opted in.
func (w *world) account(t *testing.T, namespace string) *corev1.ServiceAccount {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: "app", Annotations: map[string]string{names.AnnotationPullSecret: "true"},
	}}
	w.create(t, account)
	return account
}

// listed waits until a ServiceAccount lists its pull secret, and returns it.
func (w *world) listed(t *testing.T, account *corev1.ServiceAccount) *corev1.Secret {
	t.Helper()
	await.Condition(t, patience, "a pull secret is listed", func(ctx context.Context) (bool, error) {
		var live corev1.ServiceAccount
		err := w.admin.Get(ctx, client.ObjectKeyFromObject(account), &live)
		return len(live.ImagePullSecrets) == 1, err
	})
	return w.secret(t.Context(), t, account)
}

// secret is the pull secret of a ServiceAccount, nil if there is none.
func (w *world) secret(ctx context.Context, t *testing.T, account *corev1.ServiceAccount) *corev1.Secret {
	t.Helper()
	var found corev1.Secret
	err := w.admin.Get(ctx, client.ObjectKey{Namespace: account.Namespace, Name: names.PullSecret(account.Name, account.UID)}, &found)
	if apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		t.Fatal(err)
	}
	return &found
}

// touch changes nothing that matters of a pull secret.
func (w *world) touch(t *testing.T, secret *corev1.Secret) {
	t.Helper()
	patch := fmt.Sprintf(`{"metadata":{"annotations":{"touched":%q}}}`, secret.ResourceVersion)
	if err := w.admin.Patch(t.Context(), secret.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
}

// changed waits until the content of a pull secret is another one.
func (w *world) changed(t *testing.T, account *corev1.ServiceAccount, before *corev1.Secret) *corev1.Secret {
	t.Helper()
	var now *corev1.Secret
	await.Condition(t, patience, "another content", func(ctx context.Context) (bool, error) {
		now = w.secret(ctx, t, account)
		return now != nil && content(now) != content(before) && tokenIn(t, now) != "", nil
	})
	return now
}
