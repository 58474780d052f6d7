package legacytoken_test

import (
	"context"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/legacytoken"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/docs"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installation"
)

const patience = await.Patience

// plane is shared: each test has a namespace of its own.
var plane *controlplane.ControlPlane

func TestMain(m *testing.M) { controlplane.Main(m, &plane) }

// env is a namespace with a ServiceAccount.
type env struct {
	admin client.Client
	// user has the permissions that the documentation lists: what is tested acts
	// with them.
	user      client.Client
	namespace string
	account   *corev1.ServiceAccount
}

func newEnv(t *testing.T) *env {
	t.Helper()
	e := &env{admin: plane.Client(t), user: asDocumented(t)}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "legacy-"}}
	e.create(t, namespace)
	e.namespace = namespace.Name
	e.account = &corev1.ServiceAccount{ObjectMeta: e.meta("app")}
	e.create(t, e.account)
	return e
}

func (e *env) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: e.namespace, Name: name}
}

func (e *env) create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		if err := e.admin.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
}

func (e *env) get(t *testing.T, object client.Object) {
	t.Helper()
	if err := e.admin.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		t.Fatal(err)
	}
}

// legacy has the controller manager put a token of the ServiceAccount into Secrets.
// It returns the token of the last one.
func (e *env) legacy(t *testing.T, names ...string) (token string) {
	t.Helper()
	for _, name := range names {
		secret := &corev1.Secret{ObjectMeta: e.meta(name), Type: corev1.SecretTypeServiceAccountToken}
		secret.Annotations = map[string]string{corev1.ServiceAccountNameKey: e.account.Name}
		e.create(t, secret)
		token = e.token(t, name)
	}
	return token
}

// token waits for the token in a Secret.
func (e *env) token(t *testing.T, name string) string {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: e.meta(name)}
	await.Condition(t, patience, "a token in "+name, func(ctx context.Context) (bool, error) {
		err := e.admin.Get(ctx, client.ObjectKeyFromObject(secret), secret)
		return len(secret.Data[corev1.ServiceAccountTokenKey]) > 0, client.IgnoreNotFound(err)
	})
	return string(secret.Data[corev1.ServiceAccountTokenKey])
}

// now is the time of the API server, which runs on this machine.
func now() time.Time { return clock.RealClock{}.Now() }

// gather reads the namespace; no use counts as recent, because the cluster is new.
func (e *env) gather(t *testing.T) *legacytoken.Inventory {
	t.Helper()
	found, err := legacytoken.Gather(t.Context(), e.user, legacytoken.Scope{Namespaces: []string{e.namespace}}, now(), 0)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// find is the only token of the namespace as it is now.
func (e *env) find(t *testing.T) *legacytoken.Token {
	t.Helper()
	found := e.gather(t).Tokens
	if len(found) != 1 {
		t.Fatalf("%d legacy tokens", len(found))
	}
	return found[0]
}

// accepted waits until the API server accepts a token, or refuses it: it remembers
// tokens for some seconds.
func (e *env) accepted(t *testing.T, token string, want bool, audiences ...string) {
	t.Helper()
	await.Condition(t, patience, "the API server accepts the token or not", func(ctx context.Context) (bool, error) {
		review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: audiences}}
		err := e.admin.Create(ctx, review)
		return review.Status.Authenticated == want, err
	})
}

// asDocumented is a client of a user with the permissions that the documentation lists.
func asDocumented(t *testing.T) client.Client {
	t.Helper()
	admin := plane.Client(t)
	_, rest, _ := strings.Cut(docs.Page(t, "guides/legacy-tokens.md"), "```yaml\n")
	text, _, _ := strings.Cut(rest, "```")
	role := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), role); err != nil {
		t.Fatal(err)
	}
	const user = "retirer"
	installation.Apply(t, admin, "test", []*unstructured.Unstructured{role})
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.GetName()},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
	}
	if err := client.IgnoreAlreadyExists(admin.Create(t.Context(), binding)); err != nil {
		t.Fatal(err)
	}
	c := plane.ClientFor(t, plane.ConfigFor(t, user, "system:authenticated"))
	await.Success(t, patience, "the permissions are in force", func(ctx context.Context) error {
		return c.List(ctx, &corev1.SecretList{}, client.Limit(1))
	})
	return c
}

// here is a client of a user who has these permissions in the namespace alone, so
// that it sees the pull secrets of no other test.
func (e *env) here(t *testing.T) client.Client {
	t.Helper()
	user := e.namespace + "-retirer"
	binding := &rbacv1.RoleBinding{
		ObjectMeta: e.meta(user), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "ocm-legacy-tokens"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
	}
	if err := client.IgnoreAlreadyExists(e.admin.Create(t.Context(), binding)); err != nil {
		t.Fatal(err)
	}
	c := plane.ClientFor(t, plane.ConfigFor(t, user, "system:authenticated"))
	await.Success(t, patience, "the permissions are in force", func(ctx context.Context) error {
		return c.List(ctx, &corev1.SecretList{}, client.InNamespace(e.namespace), client.Limit(1))
	})
	return c
}
