package imagepull_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/imageregistry"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installation"
)

// serve starts a registry with the images of the world.
func (w *world) serve(t *testing.T, flags ...string) *imageregistry.Server {
	t.Helper()
	user := names.ServiceAccountUser("registry", "registry")
	installation.Create(t, w.admin, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "registry"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:auth-delegator"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	})
	kubeconfig := cluster.KubeconfigFor(t, user, "system:serviceaccounts", "system:authenticated")
	return imageregistry.Serve(t, kubeconfig, w.images, audience, flags...)
}

// image is the image that the tests push and pull.
func (w *world) image() string { return w.shop + "/app:v1" }

// push pushes the image as the builder of its namespace, with a token for an
// audience, and returns its digest.
func (w *world) push(t *testing.T, r *imageregistry.Server, audience string) string {
	t.Helper()
	w.create(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.shop, Name: "builder"}})
	token := cluster.Token(t, w.shop, "builder", authenticationv1.TokenRequestSpec{Audiences: []string{audience}})
	digest, err := r.Push(t, token, w.image())
	if err != nil {
		t.Fatalf("%v\n%s", err, r.Log())
	}
	return digest
}

// pull pulls the image with what a ServiceAccount lists in imagePullSecrets.
func (w *world) pull(t *testing.T, r *imageregistry.Server, account *corev1.ServiceAccount) (digest string, err error) {
	t.Helper()
	return r.PullAs(t, cluster.Kubeconfig(t, "cluster"), account.Namespace, account.Name, w.image())
}

// pullWith pulls the image with a token.
func (w *world) pullWith(t *testing.T, r *imageregistry.Server, token string) error {
	t.Helper()
	_, err := r.Pull(t, token, w.image())
	return err
}

// refused fails unless a registry refused a pull with a reason, which its log says a
// little later.
func refused(t *testing.T, r *imageregistry.Server, err error, reason string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), "UNAUTHORIZED") {
		t.Errorf("%v, want a refusal: %s", err, reason)
		return
	}
	await.Condition(t, patience, "the log says "+reason, func(context.Context) (bool, error) {
		return strings.Contains(r.Log(), reason), nil
	}, func() any { return r.Log() })
}

// content is the data of a pull secret, whatever its format.
func content(secret *corev1.Secret) string {
	return string(secret.Data[corev1.DockerConfigJsonKey]) + string(secret.Data[corev1.DockerConfigKey])
}

// credential is an entry of a pull secret.
type credential struct{ Auth []byte }

// tokenIn is the token in a pull secret, empty if it has none.
func tokenIn(t *testing.T, secret *corev1.Secret) string {
	t.Helper()
	var config struct{ Auths map[string]credential }
	err := json.Unmarshal(secret.Data[corev1.DockerConfigJsonKey], &config)
	if secret.Type == corev1.SecretTypeDockercfg {
		err = json.Unmarshal(secret.Data[corev1.DockerConfigKey], &config.Auths)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range config.Auths {
		_, token, _ := strings.Cut(string(entry.Auth), ":")
		return token
	}
	return ""
}
