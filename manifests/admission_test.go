package manifests_test

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"fmt"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/apply"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pemutil"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/scheme"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/identity"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installation"
)

const clusterSetLabel = names.LabelClusterSet

// admission is a hub with the admission policies and no controller.
type admission struct {
	cp    *controlplane.ControlPlane
	admin client.WithWatch
}

// newAdmission installs the policies and waits until they are in force.
func newAdmission(t *testing.T) *admission {
	t.Helper()
	cp := controlplane.Lease(t)
	admin, err := client.NewWithWatch(cp.Config(t), client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	a := &admission{cp: cp, admin: admin}
	applier := &apply.Applier{Client: admin, FieldManager: "ocm.test"}
	operator, err := manifests.RenderHubOperator(hubOperator())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := applier.Apply(t.Context(), apply.Objects(operator)...); err != nil {
		t.Fatal(err)
	}
	for _, render := range []func(manifests.Hub) ([]*unstructured.Unstructured, error){
		manifests.RenderHubCRDs, manifests.RenderHubBase, manifests.RenderHubAdmission,
	} {
		values := hub()
		values.ReplicaSets = true
		objs, err := render(values)
		if err != nil {
			t.Fatal(err)
		}
		for _, obj := range objs {
			if _, err := applier.Apply(t.Context(), obj); err != nil {
				t.Fatal(err)
			}
		}
	}
	a.grant(t, "everything-of-ocm", rbacv1.PolicyRule{
		APIGroups: []string{"cluster.open-cluster-management.io", "work.open-cluster-management.io", "addon.open-cluster-management.io"},
		Resources: []string{"*"}, Verbs: []string{"*"},
	}, "nobody-special", "acceptor", "setmaster", "agents")
	a.grant(t, "accept", rbacv1.PolicyRule{
		APIGroups: []string{"register.open-cluster-management.io"}, Resources: []string{"managedclusters/accept"}, Verbs: []string{"update"},
	}, "acceptor", "agents")
	a.grant(t, "requests", rbacv1.PolicyRule{
		APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"certificatesigningrequests"}, Verbs: []string{"create"},
	}, "agents")
	a.grant(t, "leases", rbacv1.PolicyRule{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"create"}}, "agents")
	a.grant(t, "tokens", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"}, Verbs: []string{"create"}}, "agents", "powerless")
	a.grant(t, "configmaps", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create"}}, "agents", "nobody-special", "powerless")
	a.grant(t, "sets", rbacv1.PolicyRule{
		APIGroups: []string{"cluster.open-cluster-management.io"}, Resources: []string{"managedclustersets/join", "managedclustersets/bind"},
		ResourceNames: []string{"red", "blue"}, Verbs: []string{"create"},
	}, "setmaster")
	a.grant(t, "works", rbacv1.PolicyRule{
		APIGroups: []string{"work.open-cluster-management.io"}, Resources: []string{"manifestworks", "manifestworkreplicasets"}, Verbs: []string{"create", "update", "patch"},
	}, "workers")
	a.inForce(t)
	return a
}

// grant gives a rule to groups, cluster-wide. It takes "everything-of-ocm" to
// exclude the subresources that guard, which are granted by name.
func (a *admission) grant(t *testing.T, name string, rule rbacv1.PolicyRule, groups ...string) {
	t.Helper()
	if rule.Resources[0] == "*" {
		rule.Resources = []string{
			"managedclusters", "managedclusters/status", "managedclustersetbindings", "managedclustersets",
			"manifestworks", "manifestworks/status", "managedclusteraddons",
		}
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "test-" + name}, Rules: []rbacv1.PolicyRule{rule}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "test-" + name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
	}
	for _, group := range groups {
		binding.Subjects = append(binding.Subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "Group", Name: group})
	}
	for _, obj := range []client.Object{role, binding} {
		if err := a.admin.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
}

// inForce waits until every policy refuses what it is for.
func (a *admission) inForce(t *testing.T) {
	t.Helper()
	agent := a.as(t, "probe", "agents", "system:open-cluster-management:probe")
	nobody := a.as(t, "probe", "nobody-special")
	for _, c := range []client.Object{cluster("probe"), accepted(cluster("probe-accepted"))} {
		if err := a.admin.Create(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	for name, try := range map[string]func() error{
		"names":      func() error { return nobody.Create(t.Context(), cluster("managed-clusters"), client.DryRunAll) },
		"urls":       func() error { return nobody.Create(t.Context(), withURL(cluster("x"), "http://x"), client.DryRunAll) },
		"acceptance": func() error { return nobody.Create(t.Context(), accepted(cluster("x")), client.DryRunAll) },
		"sets":       func() error { return nobody.Create(t.Context(), inRedSet(cluster("x")), client.DryRunAll) },
		"joining": func() error {
			held := brought(func(c *clusterv1.ManagedCluster) { c.Finalizers = []string{"example.com/hold"} })
			return a.as(t, names.BootstrapServiceAccountUser).Create(t.Context(), held, client.DryRunAll)
		},
		"taints": func() error { return patch(t.Context(), nobody, "probe", taintWithTime, client.DryRunAll) },
		"registration": func() error {
			return patch(t.Context(), nobody, "probe-accepted", registeredAs(identity.AnnotationCluster, `"a"`), client.DryRunAll)
		},
		"bindings": func() error { return nobody.Create(t.Context(), binding("blue"), client.DryRunAll) },
		"issuers": func() error {
			own := a.as(t, "probe", "agents", names.ClusterGroup("default"))
			return own.Create(t.Context(), configMap("default", "x"), client.DryRunAll)
		},
		"namespaces": func() error { return nobody.Create(t.Context(), cluster("default"), client.DryRunAll) },
		"root of trust": func() error {
			return nobody.Create(t.Context(), configMap("default", names.IssuerConfigMap), client.DryRunAll)
		},
		"requests": func() error { return agent.Create(t.Context(), request(t, "other-x", "other"), client.DryRunAll) },
		"tokens":   func() error { return a.token(t, a.as(t, operator, "agents"), "default") },
		"earlier agents": func() error {
			return a.token(t, a.as(t, names.AgentUser("default", "old"), "powerless", names.ClusterGroup("default")), "default")
		},
		"status": func() error { return patchStatus(t.Context(), agent, "probe", conditionTrusted, client.DryRunAll) },
		"manifests": func() error {
			empty := installation.Work("default", "w")
			empty.Spec.Workload.Manifests = nil
			return nobody.Create(t.Context(), empty, client.DryRunAll)
		},
		"executors": func() error {
			return a.as(t, "worker", "workers").Create(t.Context(), runningAs(work("default"), "default", "x"), client.DryRunAll)
		},
		"isolation": func() error { return agent.Create(t.Context(), work("default"), client.DryRunAll) },
		"own": func() error {
			return patch(t.Context(), agent, "probe", `{"metadata":{"labels":{"a":"b"}}}`, client.DryRunAll)
		},
	} {
		var last error
		err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
			last = try()
			return last != nil && strings.Contains(last.Error(), "ValidatingAdmissionPolicy"), nil
		})
		if err != nil {
			t.Fatalf("the policy for %s is not in force: %v", name, last)
		}
	}
}

// operator is the user of the hub's operator.
const operator = "system:serviceaccount:" + names.OperatorNamespace + ":" + names.ClusterManagerOperator

// token requests a token of the ServiceAccount default.
func (a *admission) token(t *testing.T, c client.Client, namespace string) error {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "default"}}
	return c.SubResource("token").Create(t.Context(), account, &authenticationv1.TokenRequest{}, client.DryRunAll)
}

func (a *admission) as(t *testing.T, user string, groups ...string) client.Client {
	t.Helper()
	return a.cp.ClientFor(t, a.cp.ConfigFor(t, user, append(groups, "system:authenticated")...))
}

func cluster(name string) *clusterv1.ManagedCluster {
	return &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func accepted(c *clusterv1.ManagedCluster) *clusterv1.ManagedCluster {
	c.Spec.HubAcceptsClient = true
	return c
}

func withURL(c *clusterv1.ManagedCluster, url string) *clusterv1.ManagedCluster {
	c.Spec.ManagedClusterClientConfigs = append(c.Spec.ManagedClusterClientConfigs, clusterv1.ClientConfig{URL: url})
	return c
}

// brought is a cluster with what it may want to bring.
func brought(change func(*clusterv1.ManagedCluster)) *clusterv1.ManagedCluster {
	c := cluster("join-2")
	change(c)
	return c
}

func inRedSet(c *clusterv1.ManagedCluster) *clusterv1.ManagedCluster {
	c.Labels = map[string]string{clusterSetLabel: "red"}
	return c
}

// binding is called red, whatever set it is for.
func binding(set string) client.Object {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "cluster.open-cluster-management.io/v1beta2", "kind": "ManagedClusterSetBinding",
		"metadata": map[string]any{"namespace": "default", "name": "red"},
		"spec":     map[string]any{"clusterSet": set},
	}}
}

func work(namespace string) *workv1.ManifestWork { return installation.Work(namespace, "w") }

const conditionTrusted = `{"status":{"conditions":[{"type":"IssuerTrusted","status":"True","reason":"X","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`

func patchStatus(ctx context.Context, c client.Client, name, body string, opts ...client.SubResourcePatchOption) error {
	return c.Status().Patch(ctx, cluster(name), client.RawPatch(types.MergePatchType, []byte(body)), opts...)
}

func lease(namespace string) client.Object {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: names.ManagedClusterLease}}
}

func configMap(namespace, name string) client.Object {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

// request is a CertificateSigningRequest that carries a cluster's label.
func request(t *testing.T, name, cluster string) client.Object {
	t.Helper()
	key, _, err := pemutil.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		t.Fatal(err)
	}
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{names.LabelClusterName: cluster}},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: pemutil.EncodeRequest(der), SignerName: "example.com/any", Usages: []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth},
		},
	}
}

const taintWithTime = `{"spec":{"taints":[{"key":"k","effect":"NoSelect","timeAdded":"2020-01-01T00:00:00Z"}]}}`

// registeredAs is a patch that sets an annotation to a value, null to remove it.
func registeredAs(annotation, value string) string {
	return `{"metadata":{"annotations":{"` + annotation + `":` + value + `}}}`
}

// patch merge-patches a ManagedCluster.
func patch(ctx context.Context, c client.Client, name, body string, opts ...client.PatchOption) error {
	return c.Patch(ctx, cluster(name), client.RawPatch(types.MergePatchType, []byte(body)), opts...)
}

// attempt is one request and what must come of it: admitted where refused is
// empty, else refused with a message that contains it.
type attempt struct {
	name    string
	refused string
	try     func(ctx context.Context) error
}

func check(t *testing.T, attempts []attempt) {
	t.Helper()
	for _, a := range attempts {
		t.Run(a.name, func(t *testing.T) {
			err := a.try(t.Context())
			switch {
			case a.refused == "" && err != nil:
				t.Errorf("refused: %v", err)
			case a.refused != "" && err == nil:
				t.Error("admitted")
			case a.refused != "" && !strings.Contains(err.Error(), a.refused):
				t.Errorf("refused for another reason: %v", err)
			case a.refused != "" && !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err):
				t.Errorf("refused with another status: %v", err)
			}
		})
	}
}

func TestAdmission(t *testing.T) {
	t.Parallel()
	a := newAdmission(t)
	nobody := a.as(t, "nobody", "nobody-special")
	acceptor := a.as(t, "boss", "acceptor")
	setmaster := a.as(t, "sets", "setmaster")
	hubController := a.as(t, names.ServiceAccountUser(names.HubNamespace, names.HubRegistrationServiceAccount), "nobody-special")

	joining := a.as(t, names.BootstrapServiceAccountUser)

	create := func(c client.Client, obj client.Object) func(context.Context) error {
		return func(ctx context.Context) error { return c.Create(ctx, obj) }
	}
	change := func(c client.Client, name, body string) func(context.Context) error {
		return func(ctx context.Context) error { return patch(ctx, c, name, body) }
	}
	setOf := func(set string) string { return `{"metadata":{"labels":{"` + clusterSetLabel + `":` + set + `}}}` }

	t.Run("names", func(t *testing.T) {
		t.Parallel()
		check(t, []attempt{
			{"a DNS label", "", create(nobody, cluster("name-1"))},
			{"a DNS subdomain", "is not valid", create(nobody, cluster("a.b"))},
			{"too long", "is not valid", create(nobody, cluster(strings.Repeat("a", 64)))},
			{"reserved", "reserved", create(nobody, cluster("managed-clusters"))},
		})
	})
	t.Run("urls", func(t *testing.T) {
		t.Parallel()
		check(t, []attempt{
			{"https", "", create(nobody, withURL(cluster("url-1"), "https://api.example:6443"))},
			{"http", "these are not: http://api.example", create(nobody, withURL(cluster("url-2"), "http://api.example"))},
			{"no URL", "https URL", create(nobody, withURL(cluster("url-2"), "api.example"))},
			{"no host", "https URL", create(nobody, withURL(cluster("url-2"), "https:///x"))},
			{"changed to http", "https URL", change(nobody, "url-1", `{"spec":{"managedClusterClientConfigs":[{"url":"http://x"}]}}`)},
		})
	})
	t.Run("acceptance", func(t *testing.T) {
		t.Parallel()
		check(t, []attempt{
			{"created accepted without the right", `user "nobody" may not set hubAcceptsClient`, create(nobody, accepted(cluster("acc-1")))},
			{"created", "", create(nobody, cluster("acc-1"))},
			{"accepted without the right", `user "nobody" may not set hubAcceptsClient`, change(nobody, "acc-1", `{"spec":{"hubAcceptsClient":true}}`)},
			{"accepted with the right", "", change(acceptor, "acc-1", `{"spec":{"hubAcceptsClient":true}}`)},
			{"changed while accepted", "", change(nobody, "acc-1", `{"spec":{"leaseDurationSeconds":30}}`)},
			{"denied by anybody", "", change(nobody, "acc-1", `{"spec":{"hubAcceptsClient":false}}`)},
			{"accepted again without the right", "may not set", change(nobody, "acc-1", `{"spec":{"hubAcceptsClient":true}}`)},
			{"created accepted with the right", "", create(acceptor, accepted(cluster("acc-2")))},
		})
	})
	t.Run("sets", func(t *testing.T) {
		t.Parallel()
		check(t, []attempt{
			{"created in a set without the right", "for each of: red", create(nobody, inRedSet(cluster("set-1")))},
			{"created", "", create(nobody, cluster("set-1"))},
			{"into default by anybody", "", change(nobody, "set-1", setOf(`"default"`))},
			{"out of default without the right", "for each of: default, red", change(nobody, "set-1", setOf(`"red"`))},
			{"created in a set with the right", "", create(setmaster, inRedSet(cluster("set-2")))},
			{"moved with both rights", "", change(setmaster, "set-2", setOf(`"blue"`))},
			{"moved with one right", "for each of: blue, green", change(setmaster, "set-2", setOf(`"green"`))},
			{"taken out without the right", "for each of: blue", change(nobody, "set-2", setOf(`null`))},
			{"taken out with the right", "", change(setmaster, "set-2", setOf(`null`))},
		})
	})
	t.Run("what a joining cluster may ask for", func(t *testing.T) {
		t.Parallel()
		check(t, []attempt{
			{"a plain cluster", "", create(joining, withURL(cluster("join-1"), "https://api.example"))},
			{"an accepted cluster", "may not set hubAcceptsClient", create(joining, accepted(cluster("join-2")))},
			// Two policies refuse it, in any order.
			{"a cluster in a set", "may not", create(joining, inRedSet(cluster("join-2")))},
			{"labels and annotations of its own", "", create(joining, brought(func(c *clusterv1.ManagedCluster) {
				c.Name = "join-3"
				c.Labels = map[string]string{"env": "prod", "example.com/tier": "x"}
				c.Annotations = map[string]string{names.AnnotationClusterID: "x"}
			}))},
			{"the default set", "may not set the labels " + clusterSetLabel, create(joining, brought(func(c *clusterv1.ManagedCluster) {
				c.Labels = map[string]string{clusterSetLabel: "default", "env": "prod"}
			}))},
			{"an add-on's label", "may not set the labels feature.open-cluster-management.io/addon-high", create(joining, brought(func(c *clusterv1.ManagedCluster) {
				c.Labels = map[string]string{"feature.open-cluster-management.io/addon-high": "available"}
			}))},
			{"an annotation of the hub", "not open-cluster-management.io/image-registries", create(joining, brought(func(c *clusterv1.ManagedCluster) {
				c.Annotations = map[string]string{"open-cluster-management.io/image-registries": "{}"}
			}))},
			{"a finalizer", "finalizers and owners", create(joining, brought(func(c *clusterv1.ManagedCluster) { c.Finalizers = []string{"example.com/hold"} }))},
			{"an owner", "finalizers and owners", create(joining, brought(func(c *clusterv1.ManagedCluster) {
				c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "x"}}
			}))},
			{"a taint", "taints and the lease duration", create(joining, brought(func(c *clusterv1.ManagedCluster) {
				c.Spec.Taints = []clusterv1.Taint{{Key: "k", Effect: clusterv1.TaintEffectNoSelect}}
			}))},
			{"a lease that never ends", "taints and the lease duration", create(joining, brought(func(c *clusterv1.ManagedCluster) { c.Spec.LeaseDurationSeconds = 2147483647 }))},
			{"all of it by somebody who may change clusters", "", create(nobody, brought(func(c *clusterv1.ManagedCluster) {
				c.Name, c.Labels, c.Finalizers = "join-4", map[string]string{clusterSetLabel: "default"}, []string{"example.com/hold"}
				c.Spec.LeaseDurationSeconds = 30
			}))},
			{"a change of another cluster", "cannot patch resource", change(joining, "join-1", `{"metadata":{"labels":{"a":"b"}}}`)},
		})
	})
	t.Run("taints", func(t *testing.T) {
		t.Parallel()
		check(t, []attempt{
			{"created", "", create(nobody, cluster("taint-1"))},
			{"with a time", "timeAdded", change(nobody, "taint-1", taintWithTime)},
			{"without a time", "", change(nobody, "taint-1", `{"spec":{"taints":[{"key":"k","effect":"NoSelect"}]}}`)},
			{"the hub sets the time", "", change(hubController, "taint-1", taintWithTime)},
			{"another taint beside it", "", change(nobody, "taint-1",
				`{"spec":{"taints":[{"key":"k","effect":"NoSelect","timeAdded":"2020-01-01T00:00:00Z"},{"key":"l","effect":"NoSelect","timeAdded":null}]}}`)},
			{"another time", "timeAdded", change(nobody, "taint-1",
				`{"spec":{"taints":[{"key":"k","effect":"NoSelect","timeAdded":"2021-01-01T00:00:00Z"}]}}`)},
			{"removed", "", change(nobody, "taint-1", `{"spec":{"taints":null}}`)},
		})
	})
	t.Run("set bindings", func(t *testing.T) {
		t.Parallel()
		check(t, []attempt{
			{"another name", "must have the name", create(setmaster, binding("blue"))},
			{"without the right", "may not bind", create(nobody, binding("red"))},
			{"with the right", "", create(setmaster, binding("red"))},
		})
	})
}

// TestRegistrationIsFrozen: what a registration driver decides by changes only
// while the hub does not accept the cluster, whoever changes it.
func TestRegistrationIsFrozen(t *testing.T) {
	t.Parallel()
	a := newAdmission(t)
	const frozen = "deny the cluster first, then change "
	as := func(c client.Client, name, body string) func(context.Context) error {
		return func(ctx context.Context) error { return patch(ctx, c, name, body) }
	}
	denying := func(annotation, value string) string {
		return `{"metadata":{"annotations":{"` + annotation + `":` + value + `}},"spec":{"hubAcceptsClient":false}}`
	}
	for i, annotation := range identity.Annotations() {
		t.Run(annotation, func(t *testing.T) {
			t.Parallel()
			name := fmt.Sprintf("frozen-%d", i)
			check(t, []attempt{
				{"created", "", func(ctx context.Context) error { return a.admin.Create(ctx, cluster(name)) }},
				{"set before", "", as(a.admin, name, registeredAs(annotation, `"a"`))},
				{"set when accepting", "", as(a.admin, name, `{"metadata":{"annotations":{"`+annotation+`":"b"}},"spec":{"hubAcceptsClient":true}}`)},
				{"changed by an administrator", frozen + annotation, as(a.admin, name, registeredAs(annotation, `"c"`))},
				{"emptied", frozen, as(a.admin, name, registeredAs(annotation, `""`))},
				{"removed", frozen, as(a.admin, name, registeredAs(annotation, `null`))},
				{"something else changed", "", as(a.admin, name, `{"metadata":{"labels":{"a":"b"},"annotations":{"x":"y"}},"spec":{"leaseDurationSeconds":61}}`)},
				{"removed when denying", "", as(a.admin, name, denying(annotation, "null"))},
				{"accepted", "", as(a.admin, name, `{"spec":{"hubAcceptsClient":true}}`)},
				{"added by an administrator", frozen, as(a.admin, name, registeredAs(annotation, `""`))},
			})
		})
	}
	t.Run("by the cluster's agent", func(t *testing.T) {
		t.Parallel()
		agent := a.as(t, names.AgentUser("frozen", "a1"), "agents", names.ClusterGroup("frozen"), names.GroupManagedClusters)
		check(t, []attempt{
			{"created accepted", "", func(ctx context.Context) error {
				c := accepted(cluster("frozen"))
				c.Annotations = map[string]string{identity.AnnotationCluster: "a"}
				return a.admin.Create(ctx, c)
			}},
			{"changed", frozen, as(agent, "frozen", registeredAs(identity.AnnotationCluster, `"b"`))},
			{"changed with a denial", "", as(agent, "frozen", denying(identity.AnnotationCluster, `"b"`))},
		})
	})
}

// TestRootOfTrust: nobody but the agent that the hub accepted writes the issuer of
// a cluster, and the operator requests no token.
func TestRootOfTrust(t *testing.T) {
	t.Parallel()
	newAdmission(t).rootOfTrust(t)
}

func (a *admission) rootOfTrust(t *testing.T) {
	t.Helper()
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "c1", Labels: map[string]string{names.LabelClusterName: "c1"}}},
		configMap("c1", "other"),
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "default"}},
	} {
		if err := a.admin.Create(t.Context(), object); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	publish := func(c client.Client) func(context.Context) error {
		return func(ctx context.Context) error {
			return c.Create(ctx, configMap("c1", names.IssuerConfigMap), client.DryRunAll)
		}
	}
	agent := a.as(t, names.AgentUser("c1", "a1"), "agents", names.ClusterGroup("c1"))
	old := a.as(t, names.AgentUser("c1", "a0"), "powerless", names.ClusterGroup("c1"))
	aws := a.as(t, "c1", "agents", names.MappedClusterGroup("c1"))
	claimed := a.as(t, "c1", "powerless", names.MappedClusterGroup("c1"))
	addOn := "system:open-cluster-management:cluster:c1:addon:a"
	check(t, []attempt{
		{"the agent", "", publish(agent)},
		{"an earlier agent", "is not the agent that the hub accepted", publish(old)},
		{"an editor", "written by the agent", publish(a.as(t, "editor", "nobody-special"))},
		{"a user whom no RBAC binds", "", publish(a.admin)},
		{"an add-on that may create ConfigMaps", "written by the agent", publish(a.as(t, addOn+":agent:a", "nobody-special", addOn))},
		{"the agent of another cluster", "c1", publish(a.as(t, names.AgentUser("c2", "a1"), "agents", names.ClusterGroup("c2")))},
		{"the agent with an AWS identity", "", publish(aws)},
		{"an AWS identity of another cluster that is called like this one", "c1", publish(a.as(t, "c1", "agents", names.MappedClusterGroup("c2")))},
		{"an AWS identity without the rights of the cluster", "is not the agent that the hub accepted", publish(claimed)},
		{"the AWS identity of two clusters", "c1", publish(a.as(t, "c1", "agents", names.MappedClusterGroup("c1"), names.MappedClusterGroup("c2")))},
		{"another ConfigMap, by an editor", "", func(ctx context.Context) error {
			return a.as(t, "editor", "nobody-special").Create(ctx, configMap("c1", "x"), client.DryRunAll)
		}},
		{"a token for the agent", "", func(context.Context) error { return a.token(t, agent, "c1") }},
		{"a token for the agent with an AWS identity", "", func(context.Context) error { return a.token(t, aws, "c1") }},
		{"a token elsewhere", "is not the agent that the hub accepted", func(context.Context) error { return a.token(t, agent, "default") }},
		{"a token without the rights of the cluster", "is not the agent that the hub accepted", func(context.Context) error { return a.token(t, claimed, "c1") }},
		{"a token for an earlier agent", "is not the agent that the hub accepted", func(context.Context) error { return a.token(t, old, "c1") }},
		{"a token for the operator", "requests none itself", func(context.Context) error { return a.token(t, a.as(t, operator), "default") }},
	})
}

func TestAgentsAreConfined(t *testing.T) {
	t.Parallel()
	a := newAdmission(t)
	for _, name := range []string{"c1", "c2"} {
		if err := a.admin.Create(t.Context(), accepted(cluster(name))); err != nil {
			t.Fatal(err)
		}
		namespace := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Namespace",
			"metadata": map[string]any{"name": name, "labels": map[string]any{names.LabelClusterName: name}},
		}}
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "default"}}
		for _, object := range []client.Object{namespace, account} {
			if err := a.admin.Create(t.Context(), object); err != nil && !apierrors.IsAlreadyExists(err) {
				t.Fatal(err)
			}
		}
	}
	// The group "agents" has been given far too much, by mistake as it were.
	a.confined(t, "certificate", names.AgentUser("c1", "a1"), names.ClusterGroup("c1"), names.GroupManagedClusters)
	a.confined(t, "AWS identity", "c1", names.MappedClusterGroup("c1"))
	a.confined(t, "AWS identity of another name", "c2", names.MappedClusterGroup("c1"))
	a.confined(t, "both groups of the cluster", "c1", names.ClusterGroup("c1"), names.MappedClusterGroup("c1"))
	a.ofNoCluster(t, "the group of all agents alone", names.GroupManagedClusters)
	a.ofNoCluster(t, "certificates of two clusters", names.ClusterGroup("c1"), names.ClusterGroup("c2"))
	a.ofNoCluster(t, "AWS identities of two clusters", names.MappedClusterGroup("c2"), names.MappedClusterGroup("c1"))
	a.ofNoCluster(t, "a certificate and an AWS identity", names.ClusterGroup("c1"), names.MappedClusterGroup("c2"))
	a.ofNoCluster(t, "the reserved name", names.MappedClusterGroup("managed-clusters"))
	a.writesBackTaints(t)
	addOn := a.as(t, "addon", "agents", "system:open-cluster-management:cluster:c1:addon:a", "system:open-cluster-management:addon:a")
	if err := addOn.Create(t.Context(), work("c2"), client.DryRunAll); err != nil {
		t.Errorf("an add-on's agent is not meant: %v", err)
	}
}

// ofNoCluster checks that nothing is the own of an agent of no one cluster.
func (a *admission) ofNoCluster(t *testing.T, name string, groups ...string) {
	t.Helper()
	agent := a.as(t, "stray", append(groups, "agents")...)
	for _, c := range []string{"c1", "c2"} {
		check(t, []attempt{
			{name + ": the cluster " + c, "its own cluster", func(ctx context.Context) error {
				return patch(ctx, agent, c, `{"spec":{"hubAcceptsClient":false}}`)
			}},
			{name + ": the status of " + c, "its own cluster", func(ctx context.Context) error {
				return patchStatus(ctx, agent, c, `{"status":{"version":{"kubernetes":"v9"}}}`)
			}},
			{name + ": the work of " + c, "its own cluster", func(ctx context.Context) error { return agent.Create(ctx, work(c), client.DryRunAll) }},
			{name + ": the lease of " + c, "its own cluster", func(ctx context.Context) error { return agent.Create(ctx, lease(c), client.DryRunAll) }},
			// Three policies refuse this; any may answer.
			{name + ": the issuer of " + c, c, func(ctx context.Context) error {
				return agent.Create(ctx, configMap(c, names.IssuerConfigMap), client.DryRunAll)
			}},
			{name + ": a token of " + c, "is not the agent that the hub accepted", func(context.Context) error { return a.token(t, agent, c) }},
			{name + ": a request of " + c, "may not make a CertificateSigningRequest of the cluster", func(ctx context.Context) error {
				return agent.Create(ctx, request(t, c+"-x", c), client.DryRunAll)
			}},
		})
	}
}

// confined checks what an agent of the cluster c1 may do to it and to c2. Its user
// name makes no difference.
func (a *admission) confined(t *testing.T, name, user string, groups ...string) {
	t.Helper()
	agent := a.as(t, user, append(groups, "agents")...)
	own := func(body string) func(context.Context) error {
		return func(ctx context.Context) error { return patch(ctx, agent, "c1", body) }
	}
	check(t, []attempt{
		{name + ": its client configs", "", own(`{"spec":{"managedClusterClientConfigs":[{"url":"https://x"}]}}`)},
		{name + ": its own annotations", "", own(`{"metadata":{"annotations":{"agent.open-cluster-management.io/a":"b"}}}`)},
		{name + ": the hub's annotations", "annotations", own(`{"metadata":{"annotations":{"open-cluster-management.io/force-detach":"true"}}}`)},
		{name + ": its labels", "labels", own(`{"metadata":{"labels":{"a":"b"}}}`)},
		{name + ": its finalizers", "finalizers", own(`{"metadata":{"finalizers":["a/b"]}}`)},
		{name + ": its taints", "taints", own(`{"spec":{"taints":[{"key":"k","effect":"NoSelect"}]}}`)},
		{name + ": its lease duration", "lease duration", own(`{"spec":{"leaseDurationSeconds":1}}`)},
		{name + ": leaving", "", own(`{"spec":{"hubAcceptsClient":false}}`)},
		{name + ": accepting itself", "may not accept its own cluster", own(`{"spec":{"hubAcceptsClient":true}}`)},
		{name + ": deleting itself", "neither create nor delete", func(ctx context.Context) error { return agent.Delete(ctx, cluster("c1")) }},
		// Two policies refuse this; either may answer.
		{name + ": creating another", "agent", func(ctx context.Context) error { return agent.Create(ctx, cluster("c3")) }},
		{name + ": another cluster", "its own cluster", func(ctx context.Context) error {
			return patch(ctx, agent, "c2", `{"spec":{"hubAcceptsClient":false}}`)
		}},
		{name + ": another cluster's status", "its own cluster", func(ctx context.Context) error {
			return agent.Status().Patch(ctx, cluster("c2"), client.RawPatch(types.MergePatchType, []byte(`{"status":{"version":{"kubernetes":"v9"}}}`)))
		}},
		{name + ": its status", "", func(ctx context.Context) error {
			return patchStatus(ctx, agent, "c1", `{"status":{"version":{"kubernetes":"v1"}}}`)
		}},
		{name + ": trust in its issuer", "that the hub sets: IssuerTrusted", func(ctx context.Context) error {
			return patchStatus(ctx, agent, "c1", conditionTrusted)
		}},
		{name + ": its denial", "that the hub sets: HubAcceptedManagedCluster", func(ctx context.Context) error {
			return patchStatus(ctx, agent, "c1", `{"status":{"conditions":[{"type":"HubAcceptedManagedCluster","status":"False","reason":"HubClusterAdminDenied","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`)
		}},
		{name + ": its second name", "that the hub sets: ClusterIDConflict", func(ctx context.Context) error {
			return patchStatus(ctx, agent, "c1", `{"status":{"conditions":[{"type":"ClusterIDConflict","status":"False","reason":"JoinedOnce","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`)
		}},
		{name + ": its overdue lease", "that the hub sets: LeaseOverdue", func(ctx context.Context) error {
			return patchStatus(ctx, agent, "c1", `{"status":{"conditions":[{"type":"LeaseOverdue","status":"False","reason":"LeaseRenewed","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`)
		}},
		{name + ": its overdue certificate", "that the hub sets: CredentialOverdue", func(ctx context.Context) error {
			return patchStatus(ctx, agent, "c1", `{"status":{"conditions":[{"type":"CredentialOverdue","status":"False","reason":"CredentialRenewed","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`)
		}},
		{name + ": its grant", "that the hub sets: RegistrationGranted", func(ctx context.Context) error {
			return patchStatus(ctx, agent, "c1", `{"status":{"conditions":[{"type":"RegistrationGranted","status":"True","reason":"Granted","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`)
		}},
		// Three policies refuse this; any may answer.
		{name + ": a record in the hub's namespace", "agent", func(ctx context.Context) error {
			return agent.Create(ctx, configMap(names.HubNamespace, "x"), client.DryRunAll)
		}},
		{name + ": its own condition", "", func(ctx context.Context) error {
			return patchStatus(ctx, agent, "c1", `{"status":{"conditions":[{"type":"ManagedClusterJoined","status":"True","reason":"X","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`)
		}},
		{name + ": a request of its own", "", func(ctx context.Context) error { return agent.Create(ctx, request(t, "c1-x", "c1"), client.DryRunAll) }},
		{name + ": a request for its add-on", "", func(ctx context.Context) error {
			return agent.Create(ctx, request(t, "addon-c1-a-x", "c1"), client.DryRunAll)
		}},
		{name + ": a request with another's label", `of the cluster "c2"`, func(ctx context.Context) error {
			return agent.Create(ctx, request(t, "c1-x", "c2"), client.DryRunAll)
		}},
		{name + ": a request with another's name", "begins with its cluster", func(ctx context.Context) error {
			return agent.Create(ctx, request(t, "c2-x", "c1"), client.DryRunAll)
		}},
		{name + ": its issuer", "", func(ctx context.Context) error {
			return agent.Create(ctx, configMap("c1", names.IssuerConfigMap), client.DryRunAll)
		}},
		{name + ": another ConfigMap", "touch only", func(ctx context.Context) error { return agent.Create(ctx, configMap("c1", "x"), client.DryRunAll) }},
		// Three policies refuse this; any may answer.
		{name + ": another cluster's issuer", "c2", func(ctx context.Context) error {
			return agent.Create(ctx, configMap("c2", names.IssuerConfigMap), client.DryRunAll)
		}},
		{name + ": a token", "", func(context.Context) error { return a.token(t, agent, "c1") }},
		{name + ": a token of another cluster", `not the agent that the hub accepted for the cluster "c2"`, func(context.Context) error {
			return a.token(t, agent, "c2")
		}},
		{name + ": its lease", "", func(ctx context.Context) error { return agent.Create(ctx, lease("c1"), client.DryRunAll) }},
		{name + ": another cluster's lease", "its own cluster", func(ctx context.Context) error {
			return agent.Create(ctx, lease("c2"), client.DryRunAll)
		}},
		{name + ": its own work", "", func(ctx context.Context) error { return agent.Create(ctx, work("c1"), client.DryRunAll) }},
		{name + ": another cluster's work", "its own cluster", func(ctx context.Context) error { return agent.Create(ctx, work("c2"), client.DryRunAll) }},
	})
	if err := patch(t.Context(), a.admin, "c1", `{"spec":{"hubAcceptsClient":true}}`); err != nil {
		t.Fatal(err)
	}
}

// writesBackTaints shows that an agent can write its ManagedCluster as a whole
// while the hub has it tainted and afterwards, when an empty list is left that
// a typed client leaves out.
func (a *admission) writesBackTaints(t *testing.T) {
	t.Helper()
	hub := a.as(t, names.ServiceAccountUser(names.HubNamespace, names.HubRegistrationServiceAccount), "nobody-special")
	agent := a.as(t, names.AgentUser("c1", "whole"), "agents", names.ClusterGroup("c1"), names.GroupManagedClusters)
	for _, taints := range []string{taintWithTime, `{"spec":{"taints":[]}}`} {
		if err := patch(t.Context(), hub, "c1", taints); err != nil {
			t.Fatal(err)
		}
		var own clusterv1.ManagedCluster
		if err := agent.Get(t.Context(), client.ObjectKey{Name: "c1"}, &own); err != nil {
			t.Fatal(err)
		}
		own.Spec.HubAcceptsClient = false
		if err := agent.Update(t.Context(), &own, client.DryRunAll); err != nil {
			t.Errorf("leaving with %s: %v", taints, err)
		}
	}
}
