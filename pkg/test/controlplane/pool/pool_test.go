package pool_test

import (
	"context"
	"net"
	"path/filepath"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/scheme"
	localplane "github.com/kubectl-ocm/kubectl-ocm/pkg/local/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane/pool"
)

const patience = await.Patience

// TestReset does to a control plane what tests do, and worse, and has it back as new.
func TestReset(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	// More than once: a reset must not break the next one.
	var url string
	for range 3 {
		plane := lease(t, p)
		if url != "" && plane.URL() != url {
			t.Fatal("the control plane was not leased again")
		}
		url = plane.URL()
		untouched(t, plane)
		touch(t, plane)
		p.Release(plane)
	}
	if started, leased := p.Counts(); started != 1 || leased != 3 {
		t.Errorf("%d starts for %d leases", started, leased)
	}
}

const user = "visitor"

// touch leaves objects of every kind that a reset has to think of.
func touch(t *testing.T, plane *pool.Plane) {
	t.Helper()
	admin := connect(t, plane)
	meta := metav1.ObjectMeta{Name: "visit"}
	stuck := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "stuck"}}
	held := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "stuck", Name: "held", Finalizers: []string{"example.com/never"}}}
	for _, object := range []client.Object{
		stuck, held,
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "visit"}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: meta,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
		},
		policy(meta),
		&admissionregistrationv1.ValidatingAdmissionPolicyBinding{
			ObjectMeta: meta,
			Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName: meta.Name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
			},
		},
		definition(),
	} {
		if err := admin.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	await.Condition(t, patience, "the visit is stored", func(ctx context.Context) (bool, error) {
		err := admin.Create(ctx, visit())
		return err == nil || apierrors.IsAlreadyExists(err), nil
	})
	await.Condition(t, patience, "the policy denies", func(ctx context.Context) (bool, error) {
		err := admin.Create(ctx, denied(), client.DryRunAll)
		return apierrors.IsInvalid(err), nil
	})
	as := connectAs(t, plane, user)
	await.Condition(t, patience, "the visitor may read", func(ctx context.Context) (bool, error) {
		return as.List(ctx, &corev1.SecretList{}) == nil, nil
	})
	if err := admin.Delete(t.Context(), stuck); err != nil {
		t.Fatal(err)
	}
	// What was there before changes and vanishes.
	if err := admin.Delete(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "view"}}); err != nil {
		t.Fatal(err)
	}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"visited":"true"}}}`))
	if err := admin.Patch(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceDefault}}, patch); err != nil {
		t.Fatal(err)
	}
}

// untouched checks, without waiting, that nothing of a visit is there or has an effect.
func untouched(t *testing.T, plane *pool.Plane) {
	t.Helper()
	admin := connect(t, plane)
	var namespaces corev1.NamespaceList
	if err := admin.List(t.Context(), &namespaces); err != nil {
		t.Fatal(err)
	}
	for _, namespace := range namespaces.Items {
		if namespace.Labels["visited"] != "" || namespace.Name == "stuck" {
			t.Errorf("namespace %s is as the last visitor left it", namespace.Name)
		}
	}
	if err := admin.Create(t.Context(), denied(), client.DryRunAll); err != nil {
		t.Errorf("the policy still denies: %v", err)
	}
	if err := connectAs(t, plane, user).List(t.Context(), &corev1.SecretList{}); !apierrors.IsForbidden(err) {
		t.Errorf("the visitor reads Secrets: %v", err)
	}
	if err := admin.Get(t.Context(), client.ObjectKey{Name: "view"}, &rbacv1.ClusterRole{}); err != nil {
		t.Errorf("ClusterRole view: %v", err)
	}
	err := admin.Get(t.Context(), client.ObjectKey{Name: definition().Name}, &apiextensionsv1.CustomResourceDefinition{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("the CustomResourceDefinition: %v", err)
	}
}

// TestCrashedHolder has a control plane back whose holder did not say so.
func TestCrashedHolder(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	socket := filepath.Join(t.TempDir(), "pool")
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- pool.Serve(listener, p) }()
	// What a process that is killed does: its connection closes.
	var urls []string
	for range 2 {
		grant, release, err := pool.Dial(t.Context(), socket, localplane.Config{})
		if err != nil {
			t.Fatal(err)
		}
		urls = append(urls, grant.URL)
		if err := release(); err != nil {
			t.Fatal(err)
		}
	}
	_ = listener.Close()
	if err := <-served; err != nil {
		t.Error(err)
	}
	if started, leased := p.Counts(); urls[0] != urls[1] || started != 1 || leased != 2 {
		t.Errorf("leased %v, %d starts for %d leases", urls, started, leased)
	}
}

func TestFailedStart(t *testing.T) {
	t.Parallel()
	p := pool.New("/bin/false", func(err error) { t.Error(err) })
	t.Cleanup(p.Close)
	if plane, err := p.Lease(localplane.Config{}); err == nil {
		t.Errorf("leased %s", plane.URL())
	}
}

func newPool(t *testing.T) *pool.Pool {
	t.Helper()
	p := pool.New(controlplane.Localkube(t), func(err error) { t.Error(err) })
	t.Cleanup(p.Close)
	return p
}

func lease(t *testing.T, p *pool.Pool) *pool.Plane {
	t.Helper()
	plane, err := p.Lease(localplane.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return plane
}

func connect(t *testing.T, plane *pool.Plane) client.Client {
	t.Helper()
	return connectAs(t, plane, localplane.AdminUser, localplane.AdminGroup)
}

func connectAs(t *testing.T, plane *pool.Plane, name string, groups ...string) client.Client {
	t.Helper()
	config, err := plane.Access().ConfigFor(name, groups...)
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(rest.CopyConfig(config), client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// denied is what policy denies.
func denied() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "denied"}}
}

func policy(meta metav1.ObjectMeta) *admissionregistrationv1.ValidatingAdmissionPolicy {
	return &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: meta,
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				ResourceNames: []string{denied().Name},
				RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
				},
			}}},
			Validations: []admissionregistrationv1.Validation{{Expression: "false"}},
		},
	}
}

func definition() *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "visits.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.com", Scope: apiextensionsv1.ClusterScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "visits", Singular: "visit", Kind: "Visit"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}},
			}},
		},
	}
}

func visit() *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion("example.com/v1")
	object.SetKind("Visit")
	object.SetName("visit")
	return object
}
