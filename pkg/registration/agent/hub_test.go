package agent_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/drivers"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
)

// hub is a hub whose administrator and controllers are the test.
type hub struct {
	*controlplane.ControlPlane
	admin client.Client
}

func newHub(t *testing.T, options ...controlplane.Option) *hub {
	t.Helper()
	return newHubOn(t, controlplane.Lease(t, append(options, controlplane.WithAuditLog())...))
}

// newMortalHub is a hub whose API server the test kills.
func newMortalHub(t *testing.T, options ...controlplane.Option) (*hub, *controlplane.Own) {
	t.Helper()
	own := controlplane.Start(t, append(options, controlplane.WithAuditLog())...)
	return newHubOn(t, own.ControlPlane), own
}

func newHubOn(t *testing.T, cp *controlplane.ControlPlane) *hub {
	t.Helper()
	h := &hub{ControlPlane: cp, admin: cp.Client(t)}
	values := manifests.Hub{Name: names.ClusterManagerName, Namespace: names.HubNamespace, DockerConfig: []byte("{}"), IdentityAnnotations: drivers.All().Annotations()}
	crds, err := manifests.RenderHubCRDs(values)
	install(t, h.admin, slices.DeleteFunc(crds, func(o *unstructured.Unstructured) bool {
		return o.GetName() != "managedclusters.cluster.open-cluster-management.io"
	}), err, crd)
	admission, err := manifests.RenderHubAdmission(values)
	install(t, h.admin, admission, err, "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
	operator, err := manifests.RenderHubOperator(manifests.HubOperator{BootstrapToken: "0123456789abcdef"})
	install(t, h.admin, slices.DeleteFunc(operator, func(o *unstructured.Unstructured) bool {
		return o.GetName() != names.BootstrapClusterRole && o.GetName() != names.BootstrapTokenBinding
	}), err, "ClusterRole", "ClusterRoleBinding")
	// The shared role of the agents.
	create(t, h.admin, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: names.ClusterRoleRegistration}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"get", "list", "watch", "update"}},
		{APIGroups: []string{"events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create"}},
	}})
	return h
}

func (h *hub) bootstrapKubeconfig(t *testing.T) []byte {
	t.Helper()
	return h.KubeconfigFor(t, names.BootstrapTokenUser, names.BootstrapTokenGroup)
}

// acceptedRules and deniedRules are what the agent of a cluster may do outside
// its namespace.
func acceptedRules(cluster string) []rbacv1.PolicyRule {
	own := []string{cluster}
	return []rbacv1.PolicyRule{
		{APIGroups: []string{names.GroupCertificates}, Resources: []string{"certificatesigningrequests"}, Verbs: []string{"create", "get", "list", "watch"}},
		{APIGroups: []string{names.RegisterGroup}, Resources: []string{names.ResourceClientCertificates}, Verbs: []string{"renew"}},
		{APIGroups: []string{names.GroupCluster}, Resources: []string{"managedclusters"}, ResourceNames: own, Verbs: []string{"get", "list", "update", "watch"}},
		{APIGroups: []string{names.GroupCluster}, Resources: []string{"managedclusters/status"}, ResourceNames: own, Verbs: []string{"patch", "update"}},
	}
}

func deniedRules(cluster string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{APIGroups: []string{names.GroupCluster}, Resources: []string{"managedclusters"}, ResourceNames: []string{cluster}, Verbs: []string{"get", "list", "watch"}}}
}

func clusterSubjects(cluster string) []rbacv1.Subject {
	return []rbacv1.Subject{{Kind: "Group", Name: names.ClusterGroup(cluster), APIGroup: rbacv1.GroupName}}
}

func (h *hub) clusterRole(t *testing.T, cluster string, rules []rbacv1.PolicyRule) {
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: names.ManagedClusterClusterRole(cluster)}, Rules: rules}
	create(t, h.admin, role)
	role.Rules, role.ResourceVersion = rules, ""
	if err := h.admin.Update(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	create(t, h.admin, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: role.Name}, Subjects: clusterSubjects(cluster), RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: role.Name, APIGroup: rbacv1.GroupName}})
}

func registrationBinding(cluster string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: names.RegistrationRoleBinding(cluster)}, Subjects: clusterSubjects(cluster), RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: names.ClusterRoleRegistration, APIGroup: rbacv1.GroupName}}
}

// accept does what a person and the hub's controllers do for a ManagedCluster.
func (h *hub) accept(t *testing.T, cluster string) {
	t.Helper()
	create(t, h.admin, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: cluster, Labels: map[string]string{names.LabelClusterName: cluster}}})
	h.clusterRole(t, cluster, acceptedRules(cluster))
	create(t, h.admin, registrationBinding(cluster))
	create(t, h.admin, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: names.ManagedClusterLease, Labels: map[string]string{names.LabelClusterName: cluster}},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: new(names.ManagedClusterLease), RenewTime: new(metav1.NowMicro())},
	})
	h.decide(t, cluster, true, metav1.Condition{Status: metav1.ConditionTrue, Reason: names.ReasonHubAccepted, Message: names.MessageHubAccepted})
}

// deny does what a person and the hub's controllers do.
func (h *hub) deny(t *testing.T, cluster string) {
	t.Helper()
	h.clusterRole(t, cluster, deniedRules(cluster))
	if err := client.IgnoreNotFound(h.admin.Delete(t.Context(), registrationBinding(cluster))); err != nil {
		t.Fatal(err)
	}
	h.decide(t, cluster, false, metav1.Condition{Status: metav1.ConditionFalse, Reason: names.ReasonHubDenied, Message: names.MessageHubDenied})
}

func (h *hub) decide(t *testing.T, cluster string, accepted bool, c metav1.Condition) {
	t.Helper()
	c.Type = clusterv1.ManagedClusterConditionHubAccepted
	eventually(t, "the decision on "+cluster, func() (bool, error) {
		mc := h.cluster(t, cluster)
		mc.Spec.HubAcceptsClient = accepted
		if err := h.admin.Update(t.Context(), mc); err != nil {
			return false, err
		}
		apimeta.SetStatusCondition(&mc.Status.Conditions, c)
		return true, h.admin.Status().Update(t.Context(), mc)
	})
}

// clock says what the hub thinks of a cluster's clock.
func (h *hub) clock(t *testing.T, cluster string, status metav1.ConditionStatus) {
	t.Helper()
	eventually(t, "the clock condition", func() (bool, error) {
		mc := h.cluster(t, cluster)
		apimeta.SetStatusCondition(&mc.Status.Conditions, metav1.Condition{Type: clusterv1.ManagedClusterConditionClockSynced, Status: status, Reason: "Test"})
		return true, h.admin.Status().Update(t.Context(), mc)
	})
}

func (h *hub) cluster(t *testing.T, name string) *clusterv1.ManagedCluster {
	t.Helper()
	mc := &clusterv1.ManagedCluster{}
	if err := h.admin.Get(t.Context(), client.ObjectKey{Name: name}, mc); err != nil {
		t.Fatal(err)
	}
	return mc
}

func (h *hub) csrs(t *testing.T, cluster string) []certificatesv1.CertificateSigningRequest {
	t.Helper()
	var list certificatesv1.CertificateSigningRequestList
	if err := h.admin.List(t.Context(), &list, client.MatchingLabels{names.LabelClusterName: cluster}); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// approve approves every undecided CSR of a cluster.
func (h *hub) approve(t *testing.T, cluster string) {
	t.Helper()
	clients := kubernetes.NewForConfigOrDie(h.Config(t))
	for _, c := range h.csrs(t, cluster) {
		if len(c.Status.Conditions) > 0 {
			continue
		}
		c.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Test"}}
		if _, err := clients.CertificatesV1().CertificateSigningRequests().UpdateApproval(t.Context(), c.Name, &c, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// renewals approves renewals until the end of the test, as the hub's approver
// does: only those that the cluster's own identity asks for.
func (h *hub) renewals(t *testing.T, cluster string) {
	t.Helper()
	clients := kubernetes.NewForConfigOrDie(h.Config(t))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	t.Cleanup(func() { cancel(); <-done })
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			list, err := clients.CertificatesV1().CertificateSigningRequests().List(ctx, metav1.ListOptions{LabelSelector: names.LabelClusterName + "=" + cluster})
			for i := 0; err == nil && i < len(list.Items); i++ {
				c := &list.Items[i]
				if len(c.Status.Conditions) > 0 || !strings.HasPrefix(c.Spec.Username, names.AgentUser(cluster, "")) {
					continue
				}
				c.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Test"}}
				_, err = clients.CertificatesV1().CertificateSigningRequests().UpdateApproval(ctx, c.Name, c, metav1.UpdateOptions{})
			}
			select {
			case <-ctx.Done():
			case <-after(100 * time.Millisecond):
			}
		}
	}()
}

// joined accepts a cluster as soon as it asks, and waits until it is available.
func (h *hub) join(t *testing.T, p *process, cluster string) {
	t.Helper()
	p.reaches(t, "Requested")
	h.approve(t, cluster)
	h.accept(t, cluster)
	h.available(t, cluster)
}

func (h *hub) available(t *testing.T, cluster string) {
	t.Helper()
	eventually(t, cluster+" to be available", func() (bool, error) {
		conditions := h.cluster(t, cluster).Status.Conditions
		return apimeta.IsStatusConditionTrue(conditions, clusterv1.ManagedClusterConditionAvailable), nil
	})
}

func (h *hub) lease(t *testing.T, cluster string) time.Time {
	t.Helper()
	var lease coordinationv1.Lease
	if err := h.admin.Get(t.Context(), client.ObjectKey{Namespace: cluster, Name: names.ManagedClusterLease}, &lease); err != nil {
		t.Fatal(err)
	}
	return lease.Spec.RenewTime.Time
}

// event is what the hub's audit log says of one request.
type event struct {
	Verb string
	User struct {
		Username string
		Extra    map[string][]string
	}
	ObjectRef      struct{ Resource, Subresource, Namespace, Name string }
	ResponseStatus struct{ Code int }
}

// events are the successful requests that the hub has answered so far.
func (h *hub) events(t *testing.T) []event {
	t.Helper()
	f, err := os.Open(h.AuditLog())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var events []event
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e event
		// A line that is being written cannot be read yet.
		if err := json.Unmarshal(lines.Bytes(), &e); err == nil && e.ResponseStatus.Code < 300 {
			events = append(events, e)
		}
	}
	return events
}

// used reports whether a credential was used for a request, given as "verb
// resource name", where the name of a cluster stands for what is in its namespace.
func (h *hub) used(t *testing.T, credential, request string) bool {
	t.Helper()
	return slices.ContainsFunc(h.events(t), func(e event) bool {
		made := fmt.Sprintf("%s %s %s", e.Verb, e.ObjectRef.Resource, cmp.Or(e.ObjectRef.Namespace, e.ObjectRef.Name))
		return made == request && slices.Contains(e.User.Extra["authentication.kubernetes.io/credential-id"], credential)
	})
}

// writes lists the successful writes to the objects of a cluster by a user as
// "verb resource/subresource", reviews aside, which store nothing.
func (h *hub) writes(t *testing.T, cluster, user string) []string {
	t.Helper()
	var writes []string
	for _, e := range h.events(t) {
		ours := e.User.Username == user && (strings.HasPrefix(e.ObjectRef.Name, cluster) || e.ObjectRef.Namespace == cluster)
		read := strings.Contains("get list watch", e.Verb) || e.ObjectRef.Resource == "selfsubjectaccessreviews"
		if ours && !read {
			writes = append(writes, strings.TrimSuffix(fmt.Sprintf("%s %s/%s", e.Verb, e.ObjectRef.Resource, e.ObjectRef.Subresource), "/"))
		}
	}
	return writes
}
