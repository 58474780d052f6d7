package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/imageregistry"
)

// pulls is a namespace of cluster3 whose workloads pull from a registry.
type pulls struct {
	cluster    client.Client
	kubeconfig []byte
	// auth is the registry's own connection, with which it has tokens reviewed.
	auth []byte
	// images is a directory that registries share.
	images string
}

const (
	pullContext   = "cluster3"
	pullNamespace = "shop"
	pullImage     = pullNamespace + "/app:v1"
	pullAudience  = "registry.example.com"
)

// TestPullSecrets installs the image pull secret controller, opts in, pulls with
// what it made, has the registry move, and uninstalls it.
func TestPullSecrets(t *testing.T) {
	fleet.needs(t, pullContext)
	p := newPulls(t)
	first := imageregistry.Serve(t, p.auth, p.images, pullAudience)
	pushed, err := first.Push(t, p.token(t, pullNamespace, "builder", pullAudience), pullImage)
	if err != nil {
		t.Fatalf("%v\n%s", err, first.Log())
	}
	p.install(t, first)
	t.Cleanup(func() {
		_, _ = run(context.WithoutCancel(t.Context()), fleet.kubeconfig, nil, "pull-secrets", "uninstall", "--context", pullContext, "--yes", "--force")
	})
	annotation := map[string]string{names.AnnotationPullSecret: "true"}
	app := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: pullNamespace, Name: "app", Annotations: annotation}}
	p.create(t, app)

	t.Run("an image can be pulled", func(t *testing.T) { p.pullable(t, first, pushed) })
	t.Run("a Pod gets the pull secret", func(t *testing.T) {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pullNamespace, Name: "app"}}
		pod.Spec.ServiceAccountName = app.Name
		pod.Spec.Containers = []corev1.Container{{Name: "app", Image: first.Address + "/" + pullImage}}
		if err := p.cluster.Create(t.Context(), pod, client.DryRunAll); err != nil {
			t.Fatal(err)
		}
		want := []corev1.LocalObjectReference{{Name: names.PullSecret(app.Name, app.UID)}}
		if !slices.Equal(pod.Spec.ImagePullSecrets, want) {
			t.Errorf("imagePullSecrets %v, want %v", pod.Spec.ImagePullSecrets, want)
		}
	})
	t.Run("check finds nothing wrong", func(t *testing.T) {
		fleet.must(t, "pull-secrets", "check", "--context", pullContext)
	})
	t.Run("the registry moves", func(t *testing.T) {
		second := imageregistry.Serve(t, p.auth, p.images, pullAudience)
		p.install(t, second)
		p.pullable(t, second, pushed)
		if _, err := p.pull(t, first); err == nil {
			t.Error("the pull secret is still for the former host")
		}
	})
	t.Run("uninstall leaves nothing", func(t *testing.T) {
		fleet.must(t, "pull-secrets", "uninstall", "--context", pullContext, "--yes")
		eventually(t, "nothing is left", p.empty)
	})
}

// newPulls makes the namespace, its builder, and the registry's own identity, which
// are gone at the end of the test.
func newPulls(t *testing.T) *pulls {
	t.Helper()
	p := &pulls{cluster: fleet.client(t, pullContext), kubeconfig: singleContext(t, pullContext), images: t.TempDir()}
	p.create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: pullNamespace}})
	for _, name := range []string{"builder", "registry"} {
		p.create(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: pullNamespace, Name: name}})
	}
	p.create(t, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "e2e-registry"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:auth-delegator"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: pullNamespace, Name: "registry"}},
	})
	own, err := clientcmd.Load(p.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	own.AuthInfos[own.Contexts[own.CurrentContext].AuthInfo] = &clientcmdapi.AuthInfo{Token: p.token(t, pullNamespace, "registry")}
	if p.auth, err = clientcmd.Write(*own); err != nil {
		t.Fatal(err)
	}
	return p
}

// create creates an object until the end of the test. One of an earlier run may still
// be on its way out.
func (p *pulls) create(t *testing.T, object client.Object) {
	t.Helper()
	eventually(t, object.GetName()+" is created", func(ctx context.Context) error { return p.cluster.Create(ctx, object) })
	t.Cleanup(func() { _ = p.cluster.Delete(context.WithoutCancel(t.Context()), object) })
}

// token is one of a ServiceAccount, without audiences for the API server.
func (p *pulls) token(t *testing.T, namespace, account string, audiences ...string) string {
	t.Helper()
	of := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account}}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: audiences}}
	if err := p.cluster.SubResource("token").Create(t.Context(), of, request); err != nil {
		t.Fatal(err)
	}
	return request.Status.Token
}

// install installs the controller for a registry, or changes the registry.
func (p *pulls) install(t *testing.T, registry *imageregistry.Server) {
	t.Helper()
	fleet.must(t, "pull-secrets", "install", "--context", pullContext, "--wait", "--registry", registry.Address, "--audience", pullAudience)
}

func (p *pulls) pull(t *testing.T, registry *imageregistry.Server) (digest string, err error) {
	t.Helper()
	return registry.PullAs(t, p.kubeconfig, pullNamespace, "app", pullImage)
}

// pullable waits until the image can be pulled as the ServiceAccount.
func (p *pulls) pullable(t *testing.T, registry *imageregistry.Server, pushed string) {
	t.Helper()
	eventually(t, "a pull succeeds", func(context.Context) error {
		pulled, err := p.pull(t, registry)
		if err == nil && pulled != pushed {
			err = fmt.Errorf("pulled %s, want %s", pulled, pushed)
		}
		return err
	})
}

// empty returns what is left of the controller and of what it made.
func (p *pulls) empty(ctx context.Context) error {
	var account corev1.ServiceAccount
	if err := p.cluster.Get(ctx, client.ObjectKey{Namespace: pullNamespace, Name: "app"}, &account); err != nil {
		return err
	}
	var left []string
	if len(account.ImagePullSecrets) > 0 {
		left = append(left, fmt.Sprintf("entries %v", account.ImagePullSecrets))
	}
	for _, list := range []client.ObjectList{
		&corev1.SecretList{}, &corev1.NamespaceList{}, &rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBindingList{}, &rbacv1.RoleList{}, &rbacv1.RoleBindingList{},
	} {
		objects := &metav1.PartialObjectMetadataList{}
		kind, err := p.cluster.GroupVersionKindFor(list)
		if err != nil {
			return err
		}
		objects.SetGroupVersionKind(kind)
		if err := p.cluster.List(ctx, objects); err != nil {
			return err
		}
		for i := range objects.Items {
			if name := objects.Items[i].Name; strings.Contains(name, names.ImagePullRole) || strings.HasPrefix(name, "app-pull-") {
				left = append(left, kind.Kind+" "+name)
			}
		}
	}
	if len(left) > 0 {
		return errors.New(strings.Join(left, ", "))
	}
	return nil
}

// singleContext is the administrator's kubeconfig of one context.
func singleContext(t *testing.T, name string) []byte {
	t.Helper()
	config, err := clientcmd.LoadFromFile(fleet.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.CurrentContext = name
	if err := clientcmdapi.MinifyConfig(config); err != nil {
		t.Fatal(err)
	}
	data, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
