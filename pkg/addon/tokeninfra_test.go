package addon_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/interrupt"
)

// declare writes an add-on's kubeClient registration, as an agent does.
func (e *env) declare(t *testing.T, cluster, name, authType, user string) {
	t.Helper()
	body := fmt.Sprintf(`{"status":{"registrations":[{"type":"customSigner","customSigner":{"signerName":"example.com/x"}},`+
		`{"type":"kubeClient","kubeClient":{"driver":%q,"subject":{"user":%q}}}]}}`, authType, user)
	if authType == "" {
		body = `{"status":{"registrations":[]}}`
	}
	if err := e.admin.Status().Patch(t.Context(), addOn(cluster, name), client.RawPatch(types.MergePatchType, []byte(body))); err != nil {
		t.Fatal(err)
	}
}

// certify changes an add-on to certificates, which its agent says are stored.
func (e *env) certify(t *testing.T, cluster, name string) {
	t.Helper()
	e.declare(t, cluster, name, "csr", names.AddOnUser(cluster, name, name))
	e.setCondition(t, cluster, name, names.ConditionCertificateRotated, "True")
}

// ownUser and upstreamUser are the subjects of the two spellings.
func ownUser(cluster, name string) string {
	return names.ServiceAccountUser(cluster, names.AddOnServiceAccount(cluster, name))
}

func upstreamUser(cluster, name string) string {
	return names.ServiceAccountUser(cluster, names.AddOnServiceAccountUpstream(name))
}

// tokenAddOn makes an add-on whose agent has declared driver token.
func (e *env) tokenAddOn(t *testing.T, cluster, name string) {
	t.Helper()
	e.create(t, addOn(cluster, name))
	e.declare(t, cluster, name, "token", ownUser(cluster, name))
}

// awaitReady waits until the infrastructure is ready for an account that
// exists, and returns it.
func (e *env) awaitReady(t *testing.T, cluster, name, account string) *corev1.ServiceAccount {
	t.Helper()
	live := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: account}}
	e.awaitAddOn(t, cluster, name, "is "+account, func(a *addonv1beta1.ManagedClusterAddOn) bool {
		condition := apimeta.FindStatusCondition(a.Status.Conditions, names.ConditionTokenInfrastructureReady)
		return condition != nil && condition.Status == metav1.ConditionTrue && e.exists(t.Context(), t, live) &&
			condition.Message == fmt.Sprintf("ServiceAccount %s/%s (UID: %s) is ready", cluster, account, live.UID)
	})
	return live
}

func tokenRole(cluster, name string) *rbacv1.Role {
	return &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: name + "-token-role"}}
}

func tokenBinding(cluster, name string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: name + "-token-role"}}
}

func account(cluster, name string) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: name}}
}

// infrastructure returns what an add-on has.
func (e *env) infrastructure(ctx context.Context, t *testing.T, cluster, name string) []string {
	t.Helper()
	var found []string
	for what, object := range map[string]client.Object{
		"own account":      account(cluster, names.AddOnServiceAccount(cluster, name)),
		"upstream account": account(cluster, names.AddOnServiceAccountUpstream(name)),
		"role":             tokenRole(cluster, name),
		"binding":          tokenBinding(cluster, name),
	} {
		if e.exists(ctx, t, object) {
			found = append(found, what)
		}
	}
	slices.Sort(found)
	return found
}

func (e *env) awaitInfrastructure(t *testing.T, cluster, name string, want ...string) {
	t.Helper()
	var diff string
	eventually(t, fmt.Sprintf("%s/%s has %v", cluster, name, want), func(ctx context.Context) (bool, error) {
		diff = cmp.Diff(want, e.infrastructure(ctx, t, cluster, name))
		return diff == "", nil
	}, func() any { return diff })
}

func (e *env) awaitNoCondition(t *testing.T, cluster, name string) {
	t.Helper()
	e.awaitAddOn(t, cluster, name, "has no condition", func(a *addonv1beta1.ManagedClusterAddOn) bool {
		return apimeta.FindStatusCondition(a.Status.Conditions, names.ConditionTokenInfrastructureReady) == nil
	})
}

var byOwn = []string{"binding", "own account", "role"}

// TestTokenInfrastructure follows the life of identities, each add-on in a
// cluster of its own.
func TestTokenInfrastructure(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	writes := newWrites()
	e.start(t, writes.Wrap)
	for name, test := range map[string]func(*testing.T, *env, string, *interrupt.Writes){
		"made":       testMade,
		"repaired":   testRepaired,
		"respelled":  testRespelled,
		"driver":     testDriver,
		"gone":       testGone,
		"refused":    testRefused,
		"foreign":    testForeign,
		"collision":  testCollision,
		"squatted":   testSquatted,
		"unaccepted": testUnaccepted,
		"waits":      testWaits,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e.cluster(t, name)
			test(t, e, name, writes)
		})
	}
}

func testMade(t *testing.T, e *env, c string, writes *interrupt.Writes) {
	t.Helper()
	e.tokenAddOn(t, c, "a1")
	made := e.awaitReady(t, c, "a1", c+"-a1-agent")
	labels := map[string]string{"addon.open-cluster-management.io/name": "a1", "addon.open-cluster-management.io/token-infrastructure": "true"}
	role, binding := tokenRole(c, "a1"), tokenBinding(c, "a1")
	e.get(t.Context(), t, role)
	e.get(t.Context(), t, binding)
	for _, object := range []client.Object{made, role, binding} {
		if diff := cmp.Diff(labels, object.GetLabels()); diff != "" {
			t.Errorf("labels of %T (-want +got):\n%s", object, diff)
		}
	}
	if diff := cmp.Diff([]rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"}, ResourceNames: []string{c + "-a1-agent"}, Verbs: []string{"create"}},
		{APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"}, Verbs: []string{"subscribe"}},
	}, role.Rules); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]rbacv1.Subject{
		{Kind: "Group", APIGroup: "rbac.authorization.k8s.io", Name: "system:open-cluster-management:" + c},
		{Kind: "Group", APIGroup: "rbac.authorization.k8s.io", Name: "open-cluster-management:" + c},
	}, binding.Subjects); diff != "" {
		t.Errorf("subjects (-want +got):\n%s", diff)
	}
	// The role, the binding and the condition are applied once more where the cache
	// shows them too late.
	const wanted, again = 4, 3
	if got := writes.About(c); len(got) > wanted+again {
		t.Errorf("%d writes for an identity:\n%s", len(got), strings.Join(got, "\n"))
	}
	// What agents report afterwards is nothing to write about.
	e.setCondition(t, c, "a1", "Available", "True")
	e.setCondition(t, c, "a1", names.ConditionTokenRefreshed, "True")
	e.tokenAddOn(t, c, "a2") // A later one is done after what there was to do.
	e.awaitReady(t, c, "a2", c+"-a2-agent")
	if got := writes.About(c); len(got) > 2*(wanted+again) {
		t.Errorf("%d writes for two identities:\n%s", len(got), strings.Join(got, "\n"))
	}
}

// setCondition sets a condition of an add-on, as if it had become what it is an hour ago.
func (e *env) setCondition(t *testing.T, cluster, name, kind, status string) {
	t.Helper()
	e.setConditionSince(t, cluster, name, kind, status, time.Hour)
}

func (e *env) setConditionSince(t *testing.T, cluster, name, kind, status string, ago time.Duration) {
	t.Helper()
	since := metav1.NewTime(clock.RealClock{}.Now().Add(-ago))
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error { // The add-on manager writes the status as well.
		live := addOn(cluster, name)
		e.get(t.Context(), t, live)
		apimeta.SetStatusCondition(&live.Status.Conditions, metav1.Condition{
			Type: kind, Status: metav1.ConditionStatus(status), Reason: "Test", LastTransitionTime: since,
		})
		return e.admin.Status().Update(t.Context(), live)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// setMessage has the agent say that the add-on a1 lacks certificates.
func (e *env) setMessage(t *testing.T, cluster, message string) {
	t.Helper()
	e.setCondition(t, cluster, "a1", names.ConditionCertificateRotated, "False")
	e.changeCondition(t, cluster, names.ConditionCertificateRotated, func(c *metav1.Condition) { c.Message = message })
}

// changeCondition changes a condition of the add-on a1.
func (e *env) changeCondition(t *testing.T, cluster, kind string, change func(*metav1.Condition)) {
	t.Helper()
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error { // The add-on manager writes the status as well.
		live := addOn(cluster, "a1")
		e.get(t.Context(), t, live)
		change(apimeta.FindStatusCondition(live.Status.Conditions, kind))
		return e.admin.Status().Update(t.Context(), live)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func testRepaired(t *testing.T, e *env, c string, _ *interrupt.Writes) {
	t.Helper()
	e.tokenAddOn(t, c, "a1")
	first := e.awaitReady(t, c, "a1", c+"-a1-agent")
	e.delete(t, first.DeepCopy())
	eventually(t, "there is a new identity", func(context.Context) (bool, error) {
		return e.awaitReady(t, c, "a1", c+"-a1-agent").UID != first.UID, nil
	})
	e.delete(t, tokenRole(c, "a1"))
	e.awaitInfrastructure(t, c, "a1", byOwn...)
	e.delete(t, tokenBinding(c, "a1"))
	e.awaitInfrastructure(t, c, "a1", byOwn...)
	e.merge(t, tokenRole(c, "a1"), `{"rules":[{"apiGroups":[""],"resources":["serviceaccounts/token"],"verbs":["create"]}]}`)
	eventually(t, "the role is narrow again", func(ctx context.Context) (bool, error) {
		role := tokenRole(c, "a1")
		e.get(ctx, t, role)
		return len(role.Rules) == 2 && slices.Equal(role.Rules[0].ResourceNames, []string{c + "-a1-agent"}), nil
	})
	e.merge(t, tokenBinding(c, "a1"), `{"subjects":[{"kind":"User","name":"mallory","apiGroup":"rbac.authorization.k8s.io"}]}`)
	eventually(t, "the binding is the agent's again", func(ctx context.Context) (bool, error) {
		binding := tokenBinding(c, "a1")
		e.get(ctx, t, binding)
		return len(binding.Subjects) == 2 && binding.Subjects[0].Name == names.ClusterGroup(c), nil
	})
	for _, object := range []client.Object{tokenRole(c, "a1"), tokenBinding(c, "a1")} {
		e.merge(t, object, `{"metadata":{"labels":null}}`)
		eventually(t, "the labels are back", func(ctx context.Context) (bool, error) {
			e.get(ctx, t, object)
			return len(object.GetLabels()) == 2, nil
		})
	}
	// A binding to something else cannot be changed, only replaced.
	binding := tokenBinding(c, "a1")
	e.get(t.Context(), t, binding)
	e.delete(t, binding)
	binding.ResourceVersion, binding.RoleRef.Name = "", "other"
	if err := e.admin.Create(t.Context(), binding); err == nil { // Unless the manager was faster.
		eventually(t, "the binding refers to the role", func(ctx context.Context) (bool, error) {
			live := tokenBinding(c, "a1")
			return e.exists(ctx, t, live) && live.RoleRef.Name == "a1-token-role", nil
		})
	}
	// The condition is told again when somebody takes it away or forges it.
	e.setCondition(t, c, "a1", names.ConditionTokenInfrastructureReady, "False")
	e.awaitReady(t, c, "a1", c+"-a1-agent")
}

func testRespelled(t *testing.T, e *env, c string, _ *interrupt.Writes) {
	t.Helper()
	e.tokenAddOn(t, c, "a1")
	e.awaitReady(t, c, "a1", c+"-a1-agent")
	e.declare(t, c, "a1", "token", upstreamUser(c, "a1"))
	e.awaitReady(t, c, "a1", "a1-agent")
	e.awaitInfrastructure(t, c, "a1", "binding", "role", "upstream account")
	role := tokenRole(c, "a1")
	e.get(t.Context(), t, role)
	if got := role.Rules[0].ResourceNames; !slices.Equal(got, []string{"a1-agent"}) {
		t.Errorf("the role is for %v", got)
	}
	e.declare(t, c, "a1", "token", ownUser(c, "a1"))
	e.awaitReady(t, c, "a1", c+"-a1-agent")
	e.awaitInfrastructure(t, c, "a1", byOwn...)
}

func testDriver(t *testing.T, e *env, c string, _ *interrupt.Writes) {
	t.Helper()
	e.tokenAddOn(t, c, "a1")
	e.awaitReady(t, c, "a1", c+"-a1-agent")
	// The token has to work until there is a certificate.
	e.declare(t, c, "a1", "csr", names.AddOnUser(c, "a1", "a1"))
	e.setCondition(t, c, "a1", names.ConditionCertificateRotated, "False")
	e.tokenAddOn(t, c, "marker") // By now the other was looked at.
	e.awaitReady(t, c, "marker", c+"-marker-agent")
	e.awaitInfrastructure(t, c, "a1", byOwn...)
	// Until the kubelet has refreshed the Secret in its Pods, they have the token.
	e.setConditionSince(t, c, "a1", names.ConditionCertificateRotated, "True", 0)
	e.tokenAddOn(t, c, "marker2")
	e.awaitReady(t, c, "marker2", c+"-marker2-agent")
	e.awaitInfrastructure(t, c, "a1", byOwn...)
	e.setCondition(t, c, "a1", names.ConditionCertificateRotated, "False")
	e.setConditionSince(t, c, "a1", names.ConditionCertificateRotated, "True", driver.SwitchGrace-2*time.Second)
	e.awaitNoCondition(t, c, "a1")
	e.awaitInfrastructure(t, c, "a1")
	e.declare(t, c, "a1", "token", ownUser(c, "a1"))
	e.awaitReady(t, c, "a1", c+"-a1-agent")
	// Another registration has no certificate, which says nothing about this one.
	e.setMessage(t, c, "kubeClient: waiting; example.com/x: waiting")
	e.declare(t, c, "a1", "csr", names.AddOnUser(c, "a1", "a1"))
	e.tokenAddOn(t, c, "marker3")
	e.awaitReady(t, c, "marker3", c+"-marker3-agent")
	e.awaitInfrastructure(t, c, "a1", byOwn...)
	e.setMessage(t, c, "example.com/x: waiting")
	e.awaitAddOn(t, c, "a1", "waits for Pods that may have the token", func(a *addonv1beta1.ManagedClusterAddOn) bool {
		condition := apimeta.FindStatusCondition(a.Status.Conditions, names.ConditionTokenInfrastructureReady)
		return condition != nil && condition.Reason == names.ReasonTokensRetained
	})
	e.awaitInfrastructure(t, c, "a1", byOwn...)
	e.changeCondition(t, c, names.ConditionTokenInfrastructureReady, func(condition *metav1.Condition) {
		condition.LastTransitionTime = metav1.NewTime(condition.LastTransitionTime.Add(-driver.SwitchGrace))
	})
	e.setMessage(t, c, "kubeClient: waiting") // So that it is looked at again.
	e.setMessage(t, c, "example.com/x: waiting")
	e.awaitNoCondition(t, c, "a1")
	e.awaitInfrastructure(t, c, "a1")
	e.declare(t, c, "a1", "token", ownUser(c, "a1"))
	e.awaitReady(t, c, "a1", c+"-a1-agent")
	e.declare(t, c, "a1", "", "") // No kubeClient registration at all.
	e.awaitNoCondition(t, c, "a1")
	e.awaitInfrastructure(t, c, "a1")
}

func testGone(t *testing.T, e *env, c string, _ *interrupt.Writes) {
	t.Helper()
	e.tokenAddOn(t, c, "a1")
	e.awaitReady(t, c, "a1", c+"-a1-agent")
	e.delete(t, addOn(c, "a1"))
	e.awaitInfrastructure(t, c, "a1")
	// One that waits for its agent to clean up keeps its identity until then.
	held := addOn(c, "a2")
	held.Finalizers = []string{"example.com/held"}
	e.create(t, held)
	e.declare(t, c, "a2", "token", ownUser(c, "a2"))
	e.awaitReady(t, c, "a2", c+"-a2-agent")
	e.delete(t, addOn(c, "a2"))
	e.delete(t, tokenRole(c, "a2")) // It is repaired as ever.
	e.awaitInfrastructure(t, c, "a2", byOwn...)
	e.awaitReady(t, c, "a2", c+"-a2-agent")
	e.merge(t, addOn(c, "a2"), `{"metadata":{"finalizers":null}}`)
	e.awaitInfrastructure(t, c, "a2")
}

func testRefused(t *testing.T, e *env, c string, writes *interrupt.Writes) {
	t.Helper()
	e.create(t, addOn(c, "a1"))
	for _, user := range []string{
		names.ServiceAccountUser(c, "default"),
		names.ServiceAccountUser("kube-system", "a1-agent"),
		ownUser("made", "a1"),
		names.ServiceAccountUser(c, "a2-agent"),
		names.ServiceAccountUser(c, c+"-a2-agent"),
	} {
		e.declare(t, c, "a1", "token", user)
		e.awaitAddOn(t, c, "a1", "is refused "+user, func(a *addonv1beta1.ManagedClusterAddOn) bool {
			condition := apimeta.FindStatusCondition(a.Status.Conditions, names.ConditionTokenInfrastructureReady)
			return condition != nil && condition.Status == metav1.ConditionFalse &&
				condition.Reason == names.ReasonServiceAccountNotAllowed && strings.Contains(condition.Message, user)
		})
	}
	for _, w := range writes.About(c) {
		if !strings.HasSuffix(w, "/managedclusteraddons/a1/status") && !strings.Contains(w, "/events") {
			t.Errorf("wrote %s", w)
		}
	}
	e.declare(t, c, "a1", "token", ownUser(c, "a1"))
	e.awaitReady(t, c, "a1", c+"-a1-agent")
}

func testForeign(t *testing.T, e *env, c string, _ *interrupt.Writes) {
	t.Helper()
	mine := account(c, "a1-agent")
	mine.Labels = map[string]string{"addon.open-cluster-management.io/name": "a1"}
	e.create(t, mine, addOn(c, "a1"))
	e.declare(t, c, "a1", "token", upstreamUser(c, "a1"))
	condition := e.awaitNotReady(t, c, "a1", names.ReasonServiceAccountTaken)
	if !strings.Contains(condition.Message, "delete it, or set these labels") {
		t.Errorf("message %q", condition.Message)
	}
	if diff := cmp.Diff([]string{"upstream account"}, e.infrastructure(t.Context(), t, c, "a1")); diff != "" {
		t.Error(diff)
	}
	// Handing it over is a decision, made by labelling it.
	e.merge(t, mine, `{"metadata":{"labels":{"addon.open-cluster-management.io/token-infrastructure":"true"}}}`)
	if got := e.awaitReady(t, c, "a1", "a1-agent"); got.UID != mine.UID {
		t.Error("the account was replaced")
	}
}

// testSquatted: the Role and the RoleBinding have names of their own; what lies
// there, which can give the agent rights only, is replaced.
func testSquatted(t *testing.T, e *env, c string, _ *interrupt.Writes) {
	t.Helper()
	role, binding := tokenRole(c, "a1"), tokenBinding(c, "a1")
	role.Rules = []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}}}
	binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"}
	binding.Subjects = []rbacv1.Subject{{Kind: "Group", APIGroup: rbacv1.GroupName, Name: names.ClusterGroup(c)}}
	e.create(t, role, binding)
	e.tokenAddOn(t, c, "a1")
	e.awaitReady(t, c, "a1", c+"-a1-agent")
	e.get(t.Context(), t, role)
	e.get(t.Context(), t, binding)
	if len(role.Rules) != 2 || !slices.Equal(role.Rules[0].Resources, []string{"serviceaccounts/token"}) {
		t.Errorf("rules %+v", role.Rules)
	}
	if binding.RoleRef.Name != "a1-token-role" || len(binding.Subjects) != 2 {
		t.Errorf("binding %+v", binding)
	}
}

func testCollision(t *testing.T, e *env, c string, _ *interrupt.Writes) {
	t.Helper()
	first, second := c+"-x", "x" // Upstream's name for the first is ours for the second.
	e.create(t, addOn(c, first), addOn(c, second))
	e.declare(t, c, first, "token", upstreamUser(c, first))
	e.awaitReady(t, c, first, c+"-x-agent")
	e.declare(t, c, second, "token", ownUser(c, second))
	condition := e.awaitNotReady(t, c, second, names.ReasonServiceAccountTaken)
	if !strings.Contains(condition.Message, "it is the identity of add-on "+first+";") {
		t.Errorf("message %q", condition.Message)
	}
	if e.exists(t.Context(), t, tokenRole(c, second)) {
		t.Error("the agent may request tokens for the second add-on")
	}
	// The second going away takes nothing from the first.
	e.delete(t, addOn(c, second))
	e.declare(t, c, first, "token", ownUser(c, first))
	e.awaitReady(t, c, first, c+"-"+first+"-agent")
}

func testUnaccepted(t *testing.T, e *env, c string, _ *interrupt.Writes) {
	t.Helper()
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: c}}
	e.tokenAddOn(t, c, "a1")
	first := e.awaitReady(t, c, "a1", c+"-a1-agent")
	e.merge(t, cluster, `{"spec":{"hubAcceptsClient":false}}`)
	e.awaitNotReady(t, c, "a1", names.ReasonClusterNotAccepted)
	e.awaitInfrastructure(t, c, "a1")
	e.merge(t, cluster, `{"spec":{"hubAcceptsClient":true}}`)
	if second := e.awaitReady(t, c, "a1", c+"-a1-agent"); second.UID == first.UID {
		t.Error("the identity survived the denial")
	}
	// What the agent wrote just before saves it from nothing.
	for name, config := range map[string]string{"undeclared": `{}`, "switching": `{"driver":"csr"}`} {
		e.tokenAddOn(t, c, name)
		e.awaitReady(t, c, name, c+"-"+name+"-agent")
		body := `{"status":{"registrations":[{"type":"kubeClient","kubeClient":` + config + `}]}}`
		if err := e.admin.Status().Patch(t.Context(), addOn(c, name), client.RawPatch(types.MergePatchType, []byte(body))); err != nil {
			t.Fatal(err)
		}
	}
	e.delete(t, cluster)
	e.awaitNotReady(t, c, "a1", names.ReasonClusterNotAccepted)
	e.awaitInfrastructure(t, c, "a1")
	e.awaitInfrastructure(t, c, "undeclared")
	e.awaitInfrastructure(t, c, "switching")
}

func testWaits(t *testing.T, e *env, c string, writes *interrupt.Writes) {
	t.Helper()
	e.create(t, addOn(c, "a1"), addOn(c, "a2"))
	e.declare(t, c, "a1", "token", names.AddOnUser(c, "a1", "a1"))
	e.declare(t, c, "a2", "token", ownUser(c, "a2"))
	e.awaitReady(t, c, "a2", c+"-a2-agent")
	for _, w := range writes.About(c) {
		if strings.Contains(w, "/a1") {
			t.Errorf("wrote %s although the agent has not named an account", w)
		}
	}
	e.declare(t, c, "a2", "token", names.AddOnUser(c, "a2", "a2"))
	e.awaitNotReady(t, c, "a2", names.ReasonWaitingForSubject)
	e.declare(t, c, "a2", "token", ownUser(c, "a2"))
	e.awaitReady(t, c, "a2", c+"-a2-agent")
}
