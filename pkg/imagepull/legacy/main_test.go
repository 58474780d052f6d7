package legacy_test

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/legacy"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controllers"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installation"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/interrupt"
)

const patience = await.Patience

var plane *controlplane.ControlPlane

func TestMain(m *testing.M) { controlplane.Main(m, &plane) }

// env is a namespace with controllers that see nothing else.
type env struct {
	client.Client

	namespace string
	writes    *interrupt.Writes
}

func newEnv(t *testing.T) *env {
	t.Helper()
	e := &env{Client: plane.Client(t)}
	installation.ImagePull(t, e.Client, manifests.ImagePull{}, names.ImagePullServiceAccount)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "legacy-"}}
	installation.Create(t, e.Client, namespace)
	e.namespace = namespace.Name
	return e
}

// start runs the controllers until the test ends or stop is called.
func (e *env) start(t *testing.T) (stop func()) {
	t.Helper()
	e.writes = interrupt.Count(func(write, part string) bool { return strings.Contains(write, part) })
	connection := plane.ConfigForAccount(t, names.ImagePullNamespace, names.ImagePullServiceAccount)
	connection.Wrap(e.writes.Wrap)
	namespaces := map[string]cache.Config{e.namespace: {}}
	options := manager.Options{Cache: cache.Options{DefaultNamespaces: namespaces, ByObject: map[client.Object]cache.ByObject{
		&corev1.Secret{}: {Field: fields.OneTermEqualSelector("type", string(corev1.SecretTypeDockercfg))},
	}}}
	return controllers.Start(t, connection, options, func(_ context.Context, mgr manager.Manager) error {
		tokens, err := legacy.NewCache(mgr, e.namespace)
		if err != nil {
			return err
		}
		if err := (&legacy.Tokens{Client: mgr.GetClient(), Cache: tokens}).SetupWithManager(mgr); err != nil {
			return err
		}
		return (&legacy.PullSecrets{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Cache: tokens}).SetupWithManager(mgr)
	})
}

// pair makes what OpenShift's controllers made for a ServiceAccount: a token Secret
// and a pull secret with that token, tied by nothing but the annotation.
func (e *env) pair(t *testing.T, account string) (token, pull *corev1.Secret) {
	t.Helper()
	of := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: account}}
	token = &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: account + "-token-abcde", Annotations: map[string]string{
			names.AnnotationCreatedBy: names.OpenShiftDockercfg, corev1.ServiceAccountNameKey: account,
		}},
		Type: corev1.SecretTypeServiceAccountToken,
	}
	pull = &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: account + "-dockercfg-abcde", Annotations: map[string]string{
			names.AnnotationOpenShiftTokenSecret: token.Name, corev1.ServiceAccountNameKey: account,
		}},
		Type: corev1.SecretTypeDockercfg,
		Data: map[string][]byte{corev1.DockerConfigKey: []byte(`{"registry.example.com":{"auth":"dXNlcjpwYXNzd29yZA=="}}`)},
	}
	installation.Create(t, e.Client, of, token, pull)
	return token, pull
}

// marked waits until a pair is marked, and returns it as it is then.
func (e *env) marked(t *testing.T, token, pull *corev1.Secret) {
	t.Helper()
	await.Completion(t, patience, func(ctx context.Context) string {
		if err := e.Get(ctx, client.ObjectKeyFromObject(pull), pull); err != nil {
			return err.Error()
		}
		if err := e.Get(ctx, client.ObjectKeyFromObject(token), token); err != nil {
			return err.Error()
		}
		switch {
		case token.Labels[names.OpenShiftLegacyToken] != "true":
			return "the token Secret has no label"
		case pull.Annotations[names.AnnotationOpenShiftBinding] != names.OpenShiftLegacy:
			return "the pull secret has no binding"
		case len(pull.Finalizers) != 1 || pull.Finalizers[0] != names.OpenShiftLegacyToken:
			return "the pull secret has no finalizer"
		}
		return ""
	})
}

// gone waits until Secrets are gone.
func (e *env) gone(t *testing.T, secrets ...*corev1.Secret) {
	t.Helper()
	for _, secret := range secrets {
		await.Condition(t, patience, secret.Name+" is gone", func(ctx context.Context) (bool, error) {
			err := e.Get(ctx, client.ObjectKeyFromObject(secret), &corev1.Secret{})
			return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
		})
	}
}

// stays fails the test if a Secret is not as it was.
func (e *env) stays(t *testing.T, secret *corev1.Secret) {
	t.Helper()
	var now corev1.Secret
	if err := e.Get(t.Context(), client.ObjectKeyFromObject(secret), &now); err != nil {
		t.Fatal(err)
	}
	if now.ResourceVersion != secret.ResourceVersion {
		t.Errorf("%s was changed: %+v", secret.Name, now.ObjectMeta)
	}
}
