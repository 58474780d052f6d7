package executor_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installation"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/agent/executor"
)

const (
	patience = await.Patience
	account  = "klusterlet-work-sa"
)

var plane *controlplane.ControlPlane

func TestMain(m *testing.M) {
	controlplane.Main(m, &plane)
	if err := controlplane.Leaks(); err != nil {
		panic(err)
	}
}

// checker returns a checker with the permissions that join gives the work agent.
func checker(t *testing.T) *executor.Checker {
	t.Helper()
	admin := plane.Client(t)
	objs, err := manifests.RenderKlusterletWork(manifests.Klusterlet{
		Name: "klusterlet", Namespace: names.AgentNamespace, Work: &manifests.WorkAgent{Permissions: names.WorkPermissionsAdmin},
	})
	installation.Some(t, admin, objs, err, "ClusterRole", "ClusterRoleBinding")
	// A controller gathers the rules.
	awaitAllowed(t, names.ServiceAccountUser(names.AgentNamespace, account), authorizationv1.ResourceAttributes{Resource: "serviceaccounts", Verb: "impersonate"})
	config := plane.ConfigForAccount(t, names.AgentNamespace, account)
	return &executor.Checker{Reviews: plane.ClientFor(t, config), Config: config}
}

// awaitAllowed waits until the API server, which watches RBAC objects, knows a permission.
func awaitAllowed(t *testing.T, user string, permission authorizationv1.ResourceAttributes) {
	t.Helper()
	await.Condition(t, patience, user+" may "+permission.Verb+" "+permission.Resource, func(ctx context.Context) (bool, error) {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: &permission}}
		err := plane.Client(t).Create(ctx, review)
		return review.Status.Allowed, err
	})
}

// allow binds rules to the ServiceAccount "executor" of a namespace, in that namespace.
func allow(t *testing.T, namespace, name string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "executor"}}
	meta := metav1.ObjectMeta{Namespace: namespace, Name: name}
	installation.Create(t, plane.Client(t), &rbacv1.Role{ObjectMeta: meta, Rules: rules}, &rbacv1.RoleBinding{
		ObjectMeta: meta, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
	})
	for _, rule := range rules {
		awaitAllowed(t, names.ServiceAccountUser(namespace, "executor"), authorizationv1.ResourceAttributes{
			Namespace: namespace, Group: rule.APIGroups[0], Resource: rule.Resources[0], Name: strings.Join(rule.ResourceNames, ""), Verb: rule.Verbs[0],
		})
	}
}

// place creates a namespace.
func place(t *testing.T, name string) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: name + "-"}}
	if err := plane.Client(t).Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	return namespace.Name
}

func runAs(namespace string) *workv1.ManifestWorkExecutor {
	return &workv1.ManifestWorkExecutor{Subject: workv1.ManifestWorkExecutorSubject{
		Type:           workv1.ExecutorSubjectTypeServiceAccount,
		ServiceAccount: &workv1.ManifestWorkSubjectServiceAccount{Namespace: namespace, Name: "executor"},
	}}
}

// request is to apply a manifest in YAML, in which NS is the namespace.
func request(t *testing.T, resource schema.GroupVersionResource, namespace, manifest string) executor.Request {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(strings.ReplaceAll(manifest, "NS", namespace)), &object.Object); err != nil {
		t.Fatal(err)
	}
	return executor.Request{Resource: resource, Manifest: object, Owned: true}
}

var (
	configMaps = corev1.SchemeGroupVersion.WithResource("configmaps")
	all        = []string{"get", "create", "update", "patch", "delete"}
)

const configMap = `{apiVersion: v1, kind: ConfigMap, metadata: {name: one, namespace: NS}}`

// wants fails unless the answer is nil for empty words, and otherwise a denial with them.
func wants(t *testing.T, what, words string, err error) {
	t.Helper()
	switch {
	case words == "" && err != nil:
		t.Errorf("%s: %v", what, err)
	case words != "" && (!errors.Is(err, executor.ErrNotAllowed) || !strings.Contains(err.Error(), words)):
		t.Errorf("%s: got %v, want %q", what, err, words)
	}
}

// TestSubjects has executors that name no ServiceAccount: none at all permits everything.
func TestSubjects(t *testing.T) {
	t.Parallel()
	c := checker(t)
	r := request(t, configMaps, "default", configMap)
	wants(t, "no executor", "", c.Check(t.Context(), nil, r))
	user := runAs("default")
	user.Subject.Type = "User"
	wants(t, "a user", `executors of type "User" are unknown; use ServiceAccount`, c.Check(t.Context(), user, r))
	unnamed := runAs("default")
	unnamed.Subject.ServiceAccount = nil
	wants(t, "no name", "names no ServiceAccount", c.Check(t.Context(), unnamed, r))
}

// TestVerbs takes one permission away after another.
func TestVerbs(t *testing.T) {
	t.Parallel()
	c := checker(t)
	for _, missing := range append([]string{""}, all...) {
		namespace := place(t, "verbs")
		var verbs []string
		for _, verb := range all {
			if verb != missing {
				verbs = append(verbs, verb)
			}
		}
		allow(t, namespace, "maps", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: verbs})
		r := request(t, configMaps, namespace, configMap)
		words := ""
		if missing != "" {
			words = "the executor " + namespace + "/executor may not apply configmaps one in namespace " + namespace + ": it may not " + missing + " it"
		}
		wants(t, "without "+missing, words, c.Check(t.Context(), runAs(namespace), r))
		if missing == "delete" {
			r.Owned = false
			wants(t, "an object that is orphaned", "", c.Check(t.Context(), runAs(namespace), r))
		}
		other := request(t, configMaps, "default", configMap)
		wants(t, "another namespace", "in namespace default: it may not create it", c.Check(t.Context(), runAs(namespace), other))
	}
}

// TestNames has permissions for one name only.
func TestNames(t *testing.T) {
	t.Parallel()
	c := checker(t)
	namespace := place(t, "names")
	allow(t, namespace, "one", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{"one"}, Verbs: all})
	wants(t, "the name", "", c.Check(t.Context(), runAs(namespace), request(t, configMaps, namespace, configMap)))
	other := request(t, configMaps, namespace, strings.Replace(configMap, "one", "two", 1))
	wants(t, "another name", "it may not create it", c.Check(t.Context(), runAs(namespace), other))
}

// TestEscalation has an executor that may write RBAC objects and read Pods, and writes what
// grants these: Pods, and Secrets. Access reviews allow both.
func TestEscalation(t *testing.T) {
	t.Parallel()
	c, admin := checker(t), plane.Client(t)
	namespace := place(t, "escalation")
	rules := []rbacv1.PolicyRule{
		{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"roles", "rolebindings", "clusterroles", "clusterrolebindings"}, Verbs: all},
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}},
	}
	for name, resource := range map[string]string{"pods": "pods", "secrets": "secrets"} {
		installation.Create(t, admin, &rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: namespace + "-" + name},
			Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{resource}, Verbs: []string{"get"}}},
		})
	}
	// The API server learns of ClusterRoles in their order: with the last it knows those above.
	meta := metav1.ObjectMeta{Name: namespace}
	installation.Create(t, admin, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}, &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: namespace},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "executor"}},
	})
	awaitAllowed(t, names.ServiceAccountUser(namespace, "executor"), authorizationv1.ResourceAttributes{Resource: "pods", Verb: "get"})
	const (
		head  = "{apiVersion: rbac.authorization.k8s.io/v1, kind: "
		rule  = ", metadata: {name: NS-WHAT-new%s}, rules: [{apiGroups: [''], resources: [WHAT], verbs: [get]}]}"
		bind  = ", metadata: {name: NS-WHAT-new%s}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: NS-WHAT}, subjects: [{kind: User, name: u}]}"
		local = ", namespace: NS"
	)
	for resource, manifest := range map[string]string{
		"roles":               head + "Role" + strings.Replace(rule, "%s", local, 1),
		"clusterroles":        head + "ClusterRole" + strings.Replace(rule, "%s", "", 1),
		"rolebindings":        head + "RoleBinding" + strings.Replace(bind, "%s", local, 1),
		"clusterrolebindings": head + "ClusterRoleBinding" + strings.Replace(bind, "%s", "", 1),
	} {
		for what, words := range map[string]string{"pods": "", "secrets": "is attempting to grant RBAC permissions not currently held"} {
			r := request(t, rbacv1.SchemeGroupVersion.WithResource(resource), namespace, strings.ReplaceAll(manifest, "WHAT", what))
			wants(t, "the review of "+resource, "", c.Check(t.Context(), runAs(namespace), r))
			wants(t, resource+" with "+what, words, write(t, c, namespace, r))
		}
	}
}

// write creates an object as the executor.
func write(t *testing.T, c *executor.Checker, namespace string, r executor.Request) error {
	t.Helper()
	objects, err := c.Client(runAs(namespace), nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = objects.Resource(r.Resource).Namespace(r.Manifest.GetNamespace()).Create(t.Context(), r.Manifest, metav1.CreateOptions{})
	return c.Explain(runAs(namespace), r, err)
}

// TestClient has executors that Check refuses, and none.
func TestClient(t *testing.T) {
	t.Parallel()
	c := checker(t)
	user := runAs("default")
	user.Subject.Type = "User"
	_, err := c.Client(user, nil)
	wants(t, "a user", "are unknown", err)
	agent := dynamic.NewForConfigOrDie(c.Config)
	if objects, err := c.Client(nil, agent); err != nil || objects != dynamic.Interface(agent) {
		t.Errorf("without an executor: %v, %v", objects, err)
	}
	other := errors.New("other")
	r := request(t, configMaps, "default", configMap)
	if err := c.Explain(runAs("default"), r, other); !errors.Is(err, other) || errors.Is(err, executor.ErrNotAllowed) {
		t.Errorf("another error became %v", err)
	}
	wants(t, "an executor without permissions", "cannot create resource", write(t, c, "default", r))
}

// TestUnanswered has an API server that does not answer: that is no denial, and nothing may
// be written.
func TestUnanswered(t *testing.T) {
	t.Parallel()
	c := checker(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := c.Check(ctx, runAs("default"), request(t, configMaps, "default", configMap))
	if err == nil || errors.Is(err, executor.ErrNotAllowed) {
		t.Errorf("got %v", err)
	}
}
