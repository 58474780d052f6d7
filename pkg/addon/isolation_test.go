package addon_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// identity is who the agent of a cluster is on the hub, and whom the hub's
// acceptance names in the bindings.
type identity struct {
	user    string
	groups  []string
	subject rbacv1.Subject
}

// identities are an agent with a certificate and one with an AWS identity.
func identities(cluster string) map[string]identity {
	subject := func(kind, name string) rbacv1.Subject {
		return rbacv1.Subject{Kind: kind, APIGroup: rbacv1.GroupName, Name: name}
	}
	user, group := names.AgentUser(cluster, "a1"), names.MappedClusterGroup(cluster)
	return map[string]identity{
		"certificate":  {user, []string{names.ClusterGroup(cluster), names.GroupManagedClusters}, subject(rbacv1.UserKind, user)},
		"AWS identity": {cluster, []string{group}, subject(rbacv1.GroupKind, group)},
	}
}

// eachIdentity runs a test for every kind of agent of the cluster c1.
func eachIdentity(t *testing.T, test func(*testing.T, identity)) {
	t.Helper()
	for name, who := range identities("c1") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, who)
		})
	}
}

// agent is the client of a cluster's agent. What acceptance grants it about
// add-ons is granted by the test; that this is all is shown by the tests of the
// hub's registration controller.
func (e *env) agent(t *testing.T, cluster string, who identity) client.Client {
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: names.ClusterRoleRegistration}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"addon.open-cluster-management.io"}, Resources: []string{"managedclusteraddons"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{"addon.open-cluster-management.io"}, Resources: []string{"managedclusteraddons/status"}, Verbs: []string{"patch", "update"}},
	}}
	if !e.exists(t.Context(), t, role) {
		e.create(t, role)
	}
	e.create(t, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: names.RegistrationRoleBinding(cluster)},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{who.subject},
	})
	e.create(t, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: names.ManagedClusterClusterRole(cluster)}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{names.GroupCluster}, Resources: []string{"managedclusters/status"}, ResourceNames: []string{cluster}, Verbs: []string{"patch", "update"}},
	}})
	e.create(t, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: names.ManagedClusterClusterRole(cluster)},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: names.ManagedClusterClusterRole(cluster)},
		Subjects:   []rbacv1.Subject{who.subject},
	})
	return e.cp.ClientFor(t, e.cp.ConfigFor(t, who.user, who.groups...))
}

// awaitPolicy waits until the API server lets an agent write the status of an
// add-on of its cluster, and not whatever it likes: it takes a moment to know
// of a new binding and of a new policy.
func (e *env) awaitPolicy(t *testing.T, agent client.Client, cluster, name string) {
	t.Helper()
	var last error
	dryRun := client.NewDryRunClient(agent) // What was let through once may stay.
	eventually(t, "admission judges what the agent writes", func(context.Context) (bool, error) {
		last = patchStatus(t, dryRun, cluster, name, subject("probe"))
		return apierrors.IsForbidden(last) && strings.Contains(last.Error(), "ValidatingAdmissionPolicy"), nil
	}, func() any { return last })
}

// mint asks for a token of a ServiceAccount.
func mint(t *testing.T, c client.Client, namespace, name string) error {
	t.Helper()
	return c.SubResource("token").Create(t.Context(), account(namespace, name), &authenticationv1.TokenRequest{})
}

func patchStatus(t *testing.T, c client.Client, cluster, name, status string) error {
	t.Helper()
	return c.Status().Patch(t.Context(), addOn(cluster, name), client.RawPatch(types.MergePatchType, []byte(`{"status":`+status+`}`)))
}

// subject is a status whose kubeClient registration names a user and groups.
func subject(user string, groups ...string) string {
	quoted := make([]string, len(groups))
	for i, group := range groups {
		quoted[i] = fmt.Sprintf("%q", group)
	}
	return fmt.Sprintf(`{"registrations":[{"type":"kubeClient","kubeClient":{"driver":"token","subject":{"user":%q,"groups":[%s]}}}]}`,
		user, strings.Join(quoted, ","))
}

// TestTokensOfOthers: an agent obtains tokens of its add-ons' own
// ServiceAccounts, once they are made, and of no other, whatever it writes into
// the status.
func TestTokensOfOthers(t *testing.T) {
	t.Parallel()
	eachIdentity(t, testTokensOfOthers)
}

func testTokensOfOthers(t *testing.T, who identity) {
	t.Helper()
	e := newEnv(t)
	e.start(t, nil)
	for _, cluster := range []string{"c1", "c2"} {
		e.cluster(t, cluster)
		e.create(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "precious"}})
		e.create(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "foreign-agent"}})
		e.create(t, addOn(cluster, "mine"), addOn(cluster, "later"), addOn(cluster, "foreign"))
	}
	agent := e.agent(t, "c1", who)
	e.awaitPolicy(t, agent, "c1", "mine")
	if err := mint(t, agent, "c1", "c1-mine-agent"); !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) {
		t.Errorf("before there is an identity: %v", err)
	}
	if err := patchStatus(t, agent, "c1", "mine", subject(ownUser("c1", "mine"))); err != nil {
		t.Fatal(err)
	}
	e.awaitReady(t, "c1", "mine", "c1-mine-agent")
	e.declare(t, "c2", "mine", "token", ownUser("c2", "mine"))
	e.awaitReady(t, "c2", "mine", "c2-mine-agent")
	eventually(t, "the agent obtains its add-on's token", func(context.Context) (bool, error) {
		return mint(t, agent, "c1", "c1-mine-agent") == nil, nil
	})
	others := [][2]string{
		{"c1", "default"},
		{"c1", "precious"},
		{"c1", "mine-agent"},
		{"c1", "c1-later-agent"},
		{"c1", "later-agent"},
		{"c1", "foreign-agent"},
		{"c2", "c2-mine-agent"},
		{"c2", "default"},
		{"c2", "precious"},
		{"kube-system", "default"},
		{names.HubNamespace, names.HubAddOnManagerServiceAccount},
	}
	expectNone := func(when string) {
		t.Helper()
		for _, other := range others {
			if err := mint(t, agent, other[0], other[1]); !apierrors.IsForbidden(err) {
				t.Errorf("%s: token of %s/%s: %v", when, other[0], other[1], err)
			}
		}
	}
	expectNone("with an identity")
	// The status is refused at admission when the agent writes it, and by the
	// add-on manager when anybody does.
	for _, name := range []string{"default", "precious", "c1-mine-agent", "mine-agent"} {
		user := names.ServiceAccountUser("c1", name)
		if err := patchStatus(t, agent, "c1", "later", subject(user)); !apierrors.IsForbidden(err) {
			t.Errorf("naming %s: %v", user, err)
		}
		e.declare(t, "c1", "later", "token", user)
		e.awaitNotReady(t, "c1", "later", names.ReasonServiceAccountNotAllowed)
		expectNone("after naming " + user)
	}
	e.declare(t, "c1", "foreign", "token", upstreamUser("c1", "foreign"))
	e.awaitNotReady(t, "c1", "foreign", names.ReasonServiceAccountTaken)
	expectNone("after naming somebody's service account")
	e.expectMetrics(t, 2, map[string]string{"c1/later": names.ReasonServiceAccountNotAllowed, "c1/foreign": names.ReasonServiceAccountTaken})
	e.expectEvents(t, "c1", names.ReasonServiceAccountNotAllowed, names.ReasonServiceAccountTaken)
	// Nothing is left when the hub turns the cluster down.
	e.merge(t, managedCluster("c1"), `{"spec":{"hubAcceptsClient":false}}`)
	e.awaitInfrastructure(t, "c1", "mine")
	others = append(others, [2]string{"c1", "c1-mine-agent"})
	eventually(t, "the agent obtains no token", func(context.Context) (bool, error) {
		return apierrors.IsForbidden(mint(t, agent, "c1", "c1-mine-agent")), nil
	})
	expectNone("after the denial")
}

// expectMetrics looks at how many identities are ready, and why others are not.
func (e *env) expectMetrics(t *testing.T, ready float64, notReady map[string]string) {
	t.Helper()
	count, reasons := e.measure(t, "ocm_addon_token_infrastructure_ready", "ocm_addon_token_infrastructure_not_ready")
	if count != ready {
		t.Errorf("%v identities are ready, want %v", count, ready)
	}
	if diff := cmp.Diff(notReady, reasons); diff != "" {
		t.Errorf("not ready (-want +got):\n%s", diff)
	}
}

// measure returns a metric, -1 if there is none, and the reasons of another one by add-on.
func (e *env) measure(t *testing.T, count, each string) (value float64, reasons map[string]string) {
	t.Helper()
	families, err := e.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	value, reasons = -1, map[string]string{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			labels := map[string]string{}
			for _, label := range metric.GetLabel() {
				labels[label.GetName()] = label.GetValue()
			}
			switch family.GetName() {
			case count:
				value = metric.GetGauge().GetValue()
			case each:
				reasons[labels["cluster"]+"/"+labels["addon"]] = labels["reason"]
			}
		}
	}
	return value, reasons
}

// expectEvents waits for warnings about add-ons, and for nothing about those
// that are well.
func (e *env) expectEvents(t *testing.T, cluster string, reasons ...string) {
	t.Helper()
	var seen []string
	eventually(t, fmt.Sprintf("there are events %v", reasons), func(ctx context.Context) (bool, error) {
		var list eventsv1.EventList
		err := e.admin.List(ctx, &list, client.InNamespace(cluster))
		seen = nil
		for i := range list.Items {
			if list.Items[i].Regarding.Kind == "ManagedClusterAddOn" && list.Items[i].Type == corev1.EventTypeWarning {
				seen = append(seen, list.Items[i].Reason)
			}
		}
		slices.Sort(seen)
		return slices.Equal(reasons, slices.Compact(seen)), err
	}, func() any { return seen })
}

// TestStatusOfAgents: what an agent may write into the status of its add-ons.
func TestStatusOfAgents(t *testing.T) {
	t.Parallel()
	eachIdentity(t, testStatusOfAgents)
}

func testStatusOfAgents(t *testing.T, who identity) {
	t.Helper()
	e := newEnv(t)
	e.cluster(t, "c1")
	e.cluster(t, "c2")
	e.create(t, addOn("c1", "a1"), addOn("c2", "a1"))
	agent := e.agent(t, "c1", who)
	own := names.AddOnClusterGroup("c1", "a1")
	e.awaitPolicy(t, agent, "c1", "a1")
	e.status(t, "c1", "a1", subject(""))
	for _, status := range []string{
		subject(ownUser("c1", "a1")),
		subject(upstreamUser("c1", "a1")),
		subject(names.AddOnUser("c1", "a1", "a1"), own, names.AddOnGroup("a1")),
		subject(""),
		`{"conditions":[{"type":"Available","status":"True","reason":"X","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}`,
	} {
		if err := patchStatus(t, agent, "c1", "a1", status); err != nil {
			t.Errorf("%s: %v", status, err)
		}
	}
	refused := []string{
		subject("system:admin"),
		subject(names.ServiceAccountUser("c1", "default")),
		subject(names.ServiceAccountUser("c2", "c2-a1-agent")),
		subject(ownUser("c1", "a2")),
		subject(names.AddOnUser("c1", "a2", "a2")),
		subject(names.AddOnUser("c2", "a1", "a1")),
		// Add-ons whose names begin as this one's.
		subject(names.AddOnUser("c1", "a1x", "a1x")),
		subject(names.AddOnUser("c1", "a1-x", "a1")),
		subject(ownUser("c1", "a1x")),
		subject(names.AddOnUser("c1", "a1", "a1"), names.AddOnClusterGroup("c1", "a1x")),
		subject(names.AddOnUser("c1", "a1", "a1"), names.AddOnGroup("a1x")),
		subject(names.AddOnUser("c1", "a1", "a1"), "system:masters"),
		subject(names.AddOnUser("c1", "a1", "a1"), names.AddOnClusterGroup("c2", "a1")),
		subject(names.AddOnUser("c1", "a1", "a1"), names.AddOnGroup("a2")),
		`{"conditions":[{"type":"TokenInfrastructureReady","status":"True","reason":"X","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}`,
	}
	refused = append(refused, decisions()...)
	for _, status := range refused {
		if err := patchStatus(t, agent, "c1", "a1", status); !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v", status, err)
		}
	}
	if err := patchStatus(t, agent, "c2", "a1", subject("")); !apierrors.IsForbidden(err) {
		t.Errorf("another cluster's add-on: %v", err)
	}
	// What the add-on's hub side configured may stay, and other things beside it change.
	e.status(t, "c1", "a1", subject("custom-user", "custom-group"))
	for _, status := range decisions() {
		e.status(t, "c1", "a1", status)
	}
	if err := patchStatus(t, agent, "c1", "a1", `{"configReferences":null}`); !apierrors.IsForbidden(err) {
		t.Errorf("without configurations: %v", err)
	}
	if err := patchStatus(t, agent, "c1", "a1", `{"conditions":[]}`); err != nil {
		t.Errorf("beside a custom subject: %v", err)
	}
	if err := patchStatus(t, agent, "c1", "a1", subject("custom-user")); err != nil {
		t.Errorf("a custom user without its groups: %v", err)
	}
}

// decisions are what only the hub's side of an add-on decides: above all the template, which
// names permissions and signers.
func decisions() []string {
	const other = `"group":"addon.open-cluster-management.io","resource":"addontemplates"`
	return []string{
		`{"configReferences":[{` + other + `,"desiredConfig":{"name":"high","specHash":"x"}}]}`,
		`{"supportedConfigs":[{` + other + `}]}`,
		`{"namespace":"kube-system"}`,
		`{"healthCheck":{"mode":"Customized"}}`,
		`{"addOnMeta":{"displayName":"high"}}`,
		`{"relatedObjects":[{"group":"","resource":"secrets","name":"x"}]}`,
	}
}

// TestManagersLimits: the add-on manager holds rights that it could harm with;
// admission keeps it to what it is for.
func TestManagersLimits(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.cluster(t, "c1")
	e.cluster(t, "c2")
	e.create(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "precious"}})
	manager := e.cp.ClientFor(t, e.cp.ConfigFor(t, e.user()))
	labels := map[string]string{names.LabelAddOnTokenName: "a1", names.LabelTokenInfrastructure: "true"}
	meta := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}
	}
	rule := func(name string, verbs ...string) []rbacv1.PolicyRule {
		return []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"}, ResourceNames: []string{name}, Verbs: verbs}}
	}
	ref := func(name string) rbacv1.RoleRef {
		return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}
	}
	group := func(name string) []rbacv1.Subject {
		return []rbacv1.Subject{{Kind: "Group", APIGroup: rbacv1.GroupName, Name: name}}
	}
	// A binding is looked at only when there is what it binds to.
	for _, name := range []string{"a1-token-role", "other"} {
		e.create(t, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: name}})
	}
	eventually(t, "the policy is in force", func(ctx context.Context) (bool, error) {
		return apierrors.IsForbidden(manager.Create(ctx, &corev1.ServiceAccount{ObjectMeta: meta("c1", "probe")}, client.DryRunAll)), nil
	})
	for what, object := range map[string]client.Object{
		"an account without labels":     &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "a1-agent"}},
		"an account of another name":    &corev1.ServiceAccount{ObjectMeta: meta("c1", "other")},
		"an account elsewhere":          &corev1.ServiceAccount{ObjectMeta: meta("kube-system", "a1-agent")},
		"a role of another name":        &rbacv1.Role{ObjectMeta: meta("c2", "other"), Rules: rule("a1-agent", "create")},
		"a role for another account":    &rbacv1.Role{ObjectMeta: meta("c2", "a1-token-role"), Rules: rule("precious", "create")},
		"a role for any account":        &rbacv1.Role{ObjectMeta: meta("c2", "a1-token-role"), Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"}, Verbs: []string{"create"}}}},
		"a role for accounts":           &rbacv1.Role{ObjectMeta: meta("c2", "a1-token-role"), Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, Verbs: []string{"get"}}}},
		"a binding for a user":          &rbacv1.RoleBinding{ObjectMeta: meta("c1", "a1-token-role"), RoleRef: ref("a1-token-role"), Subjects: []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: "mallory"}}},
		"a binding for others":          &rbacv1.RoleBinding{ObjectMeta: meta("c1", "a1-token-role"), RoleRef: ref("a1-token-role"), Subjects: group(names.ClusterGroup("c2"))},
		"a binding for others with AWS": &rbacv1.RoleBinding{ObjectMeta: meta("c1", "a1-token-role"), RoleRef: ref("a1-token-role"), Subjects: group(names.MappedClusterGroup("c2"))},
		"a binding to a role of other":  &rbacv1.RoleBinding{ObjectMeta: meta("c1", "a1-token-role"), RoleRef: ref("other"), Subjects: group(names.ClusterGroup("c1"))},
	} {
		if err := manager.Create(t.Context(), object); !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := mint(t, manager, "c1", "precious"); !apierrors.IsForbidden(err) {
		t.Errorf("token of somebody's service account: %v", err)
	}
	if err := manager.Delete(t.Context(), account("c1", "precious")); !apierrors.IsForbidden(err) {
		t.Errorf("deletion of somebody's service account: %v", err)
	}
	made := &corev1.ServiceAccount{ObjectMeta: meta("c1", "a1-agent")}
	if err := manager.Create(t.Context(), made); err != nil {
		t.Error(err)
	}
	if err := mint(t, manager, "c1", "a1-agent"); !apierrors.IsForbidden(err) {
		t.Errorf("token of an add-on: %v", err)
	}
	// No user of the hub is kept from anything by these limits.
	if err := mint(t, e.admin, "c1", "precious"); err != nil {
		t.Error(err)
	}
}

func namespaceOf(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// TestTemplateLimits: the roles that the add-on manager may bind it gives only to an
// add-on on one cluster that was granted them, where they were granted, by bindings that
// are the add-on's.
func TestTemplateLimits(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.cluster(t, "c1")
	e.cluster(t, "c2")
	const role, other = "limits-role", "limits-other"
	for _, name := range []string{role, other} {
		e.create(t, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}})
		e.create(t, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: name}})
	}
	e.letBind(t, role, "a1")
	e.letBind(t, other, "a2")
	// All roles may be bound, so that only the grants limit what follows.
	e.permit(t, "c1", "bind-roles", rbacv1.PolicyRule{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"roles"}, Verbs: []string{"bind"}})
	// An administrator can write a grant anywhere.
	for _, namespace := range []string{"kube-system", names.HubNamespace, "c2"} {
		e.grant(t, namespace, role, "a1")
	}
	e.create(t, namespaceOf("open"), namespaceOf("openshift-monitoring"), namespaceOf("labelled"))
	e.merge(t, namespaceOf("labelled"), `{"metadata":{"labels":{"open-cluster-management.io/cluster-name":"c1"}}}`)
	e.grant(t, "openshift-monitoring", role, "a1")
	e.grant(t, "labelled", role, "a1")
	manager := e.cp.ClientFor(t, e.cp.ConfigFor(t, e.user()))
	binding := func(namespace string, kind, who string, change func(*rbacv1.RoleBinding)) *rbacv1.RoleBinding {
		b := &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: names.AddOnTemplateBinding("a1", "ClusterRole"), Labels: map[string]string{
				names.LabelAddOnTokenName: "a1", names.LabelAddOnTemplate: "", names.LabelAddOnCluster: "c1",
			}},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects: []rbacv1.Subject{{Kind: kind, APIGroup: rbacv1.GroupName, Name: who}},
		}
		if change != nil {
			change(b)
		}
		return b
	}
	own := names.AddOnUser("c1", "a1", "a1")
	var last error
	eventually(t, "the policy is in force", func(ctx context.Context) (bool, error) {
		last = manager.Create(ctx, binding("c1", "Group", "probe", nil), client.DryRunAll)
		return apierrors.IsForbidden(last) && strings.Contains(last.Error(), "ValidatingAdmissionPolicy"), nil
	}, func() any { return last })
	for what, object := range map[string]*rbacv1.RoleBinding{
		"the add-on on all clusters":    binding("c1", "Group", names.AddOnGroup("a1"), nil),
		"the add-on on another cluster": binding("c1", "User", names.AddOnUser("c2", "a1", "a1"), nil),
		"another add-on":                binding("c1", "User", names.AddOnUser("c1", "a2", "a2"), nil),
		"an account of the cluster":     binding("c1", "User", names.ServiceAccountUser("c1", "precious"), nil),
		"an account as such":            binding("c1", "ServiceAccount", "a1-agent", func(b *rbacv1.RoleBinding) { b.Subjects[0].APIGroup, b.Subjects[0].Namespace = "", "c1" }),
		"a name that is not its own":    binding("c1", "User", own, func(b *rbacv1.RoleBinding) { b.Name = "precious" }),
		"no cluster":                    binding("c1", "User", own, func(b *rbacv1.RoleBinding) { delete(b.Labels, names.LabelAddOnCluster) }),
		"no template": binding("default", "User", own, func(b *rbacv1.RoleBinding) {
			delete(b.Labels, names.LabelAddOnTemplate)
		}),
		"a role that another add-on was granted": binding("c1", "User", own, func(b *rbacv1.RoleBinding) { b.RoleRef.Name = other }),
		"a Role of the name of the ClusterRole": binding("c1", "User", own, func(b *rbacv1.RoleBinding) {
			b.RoleRef.Kind, b.Name = "Role", names.AddOnTemplateBinding("a1", "Role")
		}),
		"a namespace without a grant":  binding("open", "User", own, nil),
		"the namespace of the system":  binding("kube-system", "User", own, nil),
		"one of OpenShift":             binding("openshift-monitoring", "User", own, nil),
		"the namespace of the hub":     binding(names.HubNamespace, "User", own, nil),
		"that of another cluster":      binding("c2", "User", own, nil),
		"one with the cluster's label": binding("labelled", "User", own, nil),
	} {
		if err := manager.Create(t.Context(), object); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "ValidatingAdmissionPolicy") {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, namespace := range []string{"c1", "default"} {
		if err := manager.Create(t.Context(), binding(namespace, "User", own, nil)); err != nil {
			t.Errorf("in %s: %v", namespace, err)
		}
	}
	precious := binding("default", "User", own, func(b *rbacv1.RoleBinding) { b.Name, b.Labels = "precious", nil })
	e.create(t, precious)
	if err := manager.Delete(t.Context(), precious); !apierrors.IsForbidden(err) {
		t.Errorf("deletion of somebody's binding: %v", err)
	}
}
