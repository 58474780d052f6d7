package hub_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/drivertest"
)

// target is something on the hub that somebody could want to touch.
type target struct {
	group, resource, subresource string
	// inNamespace says that it lies in a cluster's namespace.
	inNamespace bool
	// ofHub says that it lies in the hub's own namespace.
	ofHub bool
	// name is the object's; the empty name is all of them.
	name func(cluster string) string
}

func all(string) string            { return "" }
func itself(cluster string) string { return cluster }
func issuer(string) string         { return names.IssuerConfigMap }

func targets() []target {
	clusterGroup, addOnGroup, workGroup := "cluster.open-cluster-management.io", "addon.open-cluster-management.io", "work.open-cluster-management.io"
	rbacGroup, certificates := "rbac.authorization.k8s.io", "certificates.k8s.io"
	return []target{
		{clusterGroup, "managedclusters", "", false, false, itself},
		{clusterGroup, "managedclusters", "", false, false, all},
		{clusterGroup, "managedclusters", "status", false, false, itself},
		{clusterGroup, "managedclusters", "finalizers", false, false, itself},
		{clusterGroup, "managedclustersets", "join", false, false, all},
		{names.RegisterGroup, "managedclusters", "accept", false, false, itself},
		{names.RegisterGroup, "managedclusters", "clientcertificates", false, false, itself},
		{certificates, "certificatesigningrequests", "", false, false, all},
		{certificates, "certificatesigningrequests", "approval", false, false, all},
		{certificates, "certificatesigningrequests", "status", false, false, all},
		{certificates, "signers", "", false, false, all},
		{"coordination.k8s.io", "leases", "", true, false, all},
		{addOnGroup, "managedclusteraddons", "", true, false, all},
		{addOnGroup, "managedclusteraddons", "status", true, false, all},
		{workGroup, "manifestworks", "", true, false, all},
		{workGroup, "manifestworks", "status", true, false, all},
		{"", "events", "", true, false, all},
		{"events.k8s.io", "events", "", true, false, all},
		{"", "secrets", "", true, false, all},
		{"", "configmaps", "", true, false, all},
		{"", "configmaps", "", true, false, issuer},
		{"", "configmaps", "", false, true, all},
		{"", "pods", "", true, false, all},
		{"", "serviceaccounts", "", true, false, all},
		{"", "serviceaccounts", "token", true, false, all},
		{"", "namespaces", "", false, false, itself},
		{rbacGroup, "roles", "", true, false, all},
		{rbacGroup, "rolebindings", "", true, false, all},
		{rbacGroup, "clusterroles", "", false, false, all},
		{rbacGroup, "clusterrolebindings", "", false, false, all},
		{"", "users", "", false, false, all},
		{"", "groups", "", false, false, all},
	}
}

func verbs() []string {
	return []string{
		"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection",
		"renew", "approve", "sign", "impersonate", "escalate", "bind", "*",
	}
}

// TestIsolation asks the API server about every verb on every target in one's
// own cluster and in another's, for agents in every state. What is allowed is
// what the hub binds to it, and nothing else.
func TestIsolation(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.start(t, granting(drivertest.NewOutside()), nil)
	for _, name := range []string{"mine-aws", "denied-aws"} {
		e.bare(t, name, acceptedFromTheStart, registeredAs(name))
		e.awaitGranted(t, name)
		e.awaitHolder(t, name, names.MappedClusterGroup(name))
	}
	e.bare(t, "waiting-aws", registeredAs("waiting-aws"))
	e.cluster(t, "mine", acceptedFromTheStart)
	e.cluster(t, "theirs", acceptedFromTheStart)
	e.cluster(t, "denied", acceptedFromTheStart)
	e.bare(t, "waiting")
	for _, name := range []string{"mine", "theirs", "denied"} {
		e.awaitAccepted(t, name)
	}
	e.deny(t, "denied")
	e.deny(t, "denied-aws")

	requests := []string{"certificatesigningrequests: create,get,list,watch"}
	accepted := []string{
		"certificatesigningrequests: create,get,list,watch",
		"configmaps ocm-issuer: create,delete,get,list,patch,watch",
		"events: create,patch,update",
		"events.k8s.io/events: create,patch,update",
		"leases: get,list,update,watch",
		"managedclusteraddons/status: patch,update",
		"managedclusteraddons: get,list,watch",
		"managedclusters/clientcertificates: renew",
		"managedclusters/status: patch,update",
		"managedclusters: get,list,update,watch",
		"manifestworks/status: patch,update",
		"manifestworks: get,list,patch,update,watch",
	}
	// Renewal is granted for no cluster by name; a CSR's subject decides.
	foreign := append([]string{"managedclusters/clientcertificates: renew"}, requests...)
	both := func(cluster string) []string {
		return []string{names.ClusterGroup(cluster), names.GroupManagedClusters}
	}
	aws := func(cluster string) []string { return []string{names.MappedClusterGroup(cluster)} }
	for _, tc := range []struct {
		name          string
		user          string
		groups        []string
		own           string
		want, foreign []string
	}{
		{"an accepted agent", names.AgentUser("mine", "a1"), both("mine"), "mine", accepted, foreign},
		{"another agent of an accepted cluster", names.AgentUser("mine", "a0"), both("mine"), "mine", nil, nil},
		{"an accepted agent with an AWS identity", "mine-aws", aws("mine-aws"), "mine-aws", accepted, foreign},
		{"an AWS identity, whatever its user is called", "theirs", aws("mine-aws"), "mine-aws", accepted, foreign},
		{"the user of an AWS identity without its group", "mine-aws", nil, "mine-aws", nil, nil},
		{"an AWS identity of a cluster that registers with a certificate", "mine", aws("mine"), "mine", nil, nil},
		{"a certificate of a cluster that registers with AWS", names.AgentUser("mine-aws", "a1"), both("mine-aws"), "mine-aws", nil, nil},
		// Its identity is revoked as well, so it could not look at its cluster.
		{"a denied agent with an AWS identity", "denied-aws", aws("denied-aws"), "denied-aws", nil, nil},
		{"an agent with an AWS identity that waits to be accepted", "waiting-aws", aws("waiting-aws"), "waiting-aws", nil, nil},
		{"a denied agent", names.AgentUser("denied", "a1"), both("denied"), "denied", []string{"managedclusters: get,list,watch"}, nil},
		{"an agent that waits to be accepted", names.AgentUser("waiting", "a1"), both("waiting"), "waiting", nil, nil},
		{"the group of all agents alone", "stray", []string{names.GroupManagedClusters}, "mine", nil, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			user := authorizationv1.SubjectAccessReviewSpec{User: tc.user, Groups: append(tc.groups, "system:authenticated")}
			if diff := cmp.Diff(sorted(tc.want), e.allowed(t, user, tc.own)); diff != "" {
				t.Errorf("on its own cluster (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(sorted(tc.foreign), e.allowed(t, user, "theirs")); diff != "" {
				t.Errorf("on another cluster (-want +got):\n%s", diff)
			}
		})
	}
}

func sorted(lines []string) []string { return slices.Sorted(slices.Values(lines)) }

// allowed returns what somebody may do about a cluster: for each target one
// line with the verbs.
func (e *env) allowed(t *testing.T, who authorizationv1.SubjectAccessReviewSpec, cluster string) []string {
	t.Helper()
	var lines []string
	for _, target := range targets() {
		var may []string
		for _, verb := range verbs() {
			attributes := &authorizationv1.ResourceAttributes{
				Group: target.group, Resource: target.resource, Subresource: target.subresource,
				Name: target.name(cluster), Verb: verb,
			}
			if target.inNamespace {
				attributes.Namespace = cluster
			}
			if target.ofHub {
				attributes.Namespace = names.HubNamespace
			}
			review := &authorizationv1.SubjectAccessReview{Spec: who}
			review.Spec.ResourceAttributes = attributes
			if err := e.admin.Create(t.Context(), review); err != nil {
				t.Fatal(err)
			}
			if review.Status.Allowed {
				may = append(may, verb)
			}
		}
		if len(may) > 0 {
			lines = append(lines, title(target)+": "+strings.Join(sorted(may), ","))
		}
	}
	return sorted(lines)
}

func title(t target) string {
	name := t.resource
	if t.subresource != "" {
		name += "/" + t.subresource
	}
	if t.resource == "configmaps" && t.name("") != "" {
		name += " " + t.name("")
	}
	if t.ofHub {
		name += " of the hub"
	}
	if t.group == "events.k8s.io" {
		return t.group + "/" + name
	}
	return name
}

// TestHubBindsSharedRoles: the hub controller may bind the two shared ClusterRoles without a
// look at what they permit (here they do not exist), and no other that permits more than it.
func TestHubBindsSharedRoles(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	hub := e.cp.ClientFor(t, e.connection(t, nil))
	for role, allowed := range map[string]bool{names.ClusterRoleRegistration: true, names.ClusterRoleWork: true, "cluster-admin": false} {
		err := hub.Create(t.Context(), &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, GenerateName: "binds-"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "somebody"}},
		})
		if allowed && err != nil || !allowed && !apierrors.IsForbidden(err) {
			t.Errorf("bind %s: %v, want it allowed: %t", role, err, allowed)
		}
	}
}
