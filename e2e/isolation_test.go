package e2e_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// verbs are all that RBAC knows for the objects of a cluster.
func verbs() []string {
	return []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}
}

// TestIsolation asks, for every verb, what the agent of cluster1 may do with
// the objects of cluster2, and with what belongs to nobody: nothing.
func TestIsolation(t *testing.T) {
	t.Parallel()
	awaitCondition(t, fleet.client(t, "hub"), "cluster1", clusterv1.ManagedClusterConditionJoined)
	agent := newClient(t, fleet.agentConfig(t, "cluster1"))
	other := []access{
		{group: names.GroupCluster, resource: "managedclusters", name: "cluster2"},
		{group: names.GroupCluster, resource: "managedclusters", subresource: "status", name: "cluster2"},
		{group: names.RegisterGroup, resource: "managedclusters", subresource: "accept", name: "cluster1"},
		{group: names.RegisterGroup, resource: "managedclusters", subresource: "accept", name: "cluster2"},
		{group: names.RegisterGroup, resource: "managedclusters", subresource: "clientcertificates", name: "other"},
		{resource: "namespaces", name: "cluster1"},
		{resource: "namespaces", name: "cluster2"},
		{resource: "serviceaccounts", subresource: "token", namespace: "cluster1"},
		{resource: "serviceaccounts", subresource: "token", namespace: "cluster2"},
		{resource: "serviceaccounts", subresource: "token", namespace: names.OperatorNamespace},
		{resource: "nodes"},
		{group: names.GroupCertificates, resource: "certificatesigningrequests", subresource: "approval"},
		{group: names.GroupCertificates, resource: "certificatesigningrequests", subresource: "status"},
		{group: "admissionregistration.k8s.io", resource: "validatingadmissionpolicies"},
		{group: "apiextensions.k8s.io", resource: "customresourcedefinitions"},
		{group: "operator.open-cluster-management.io", resource: "clustermanagers"},
	}
	for _, namespace := range []string{"cluster2", names.HubNamespace, "default"} {
		other = append(other, access{resource: "configmaps", namespace: namespace, name: names.IssuerConfigMap})
	}
	for _, namespace := range []string{"cluster2", names.HubNamespace, names.OperatorNamespace, "kube-system", "default"} {
		for _, r := range []access{
			{resource: "secrets"},
			{resource: "configmaps"},
			{resource: "pods"},
			{resource: "serviceaccounts"},
			{resource: "events"},
			{group: "events.k8s.io", resource: "events"},
			{group: "coordination.k8s.io", resource: "leases"},
			{group: "addon.open-cluster-management.io", resource: "managedclusteraddons"},
			{group: "addon.open-cluster-management.io", resource: "managedclusteraddons", subresource: "status"},
			{group: "work.open-cluster-management.io", resource: "manifestworks"},
			{group: "work.open-cluster-management.io", resource: "manifestworks", subresource: "status"},
			{group: rbacv1.GroupName, resource: "roles"},
			{group: rbacv1.GroupName, resource: "rolebindings"},
			{group: rbacv1.GroupName, resource: "clusterroles"},
			{group: rbacv1.GroupName, resource: "clusterrolebindings"},
		} {
			r.namespace = namespace
			other = append(other, r)
		}
	}
	for _, a := range other {
		for _, verb := range verbs() {
			a.verb = verb
			wantDenied(t, agent, a)
		}
	}
	for _, verb := range []string{"impersonate", "escalate", "bind", "approve", "sign"} {
		wantDenied(t, agent, access{verb: verb, group: "*", resource: "*"})
	}
	// The questions are asked right: what it may do with its own is allowed.
	for _, own := range []access{
		{verb: "get", group: names.GroupCluster, resource: "managedclusters", name: "cluster1"},
		{verb: "patch", group: names.GroupCluster, resource: "managedclusters", subresource: "status", name: "cluster1"},
		{verb: "update", group: "coordination.k8s.io", resource: "leases", namespace: "cluster1"},
		{verb: "patch", resource: "configmaps", namespace: "cluster1", name: names.IssuerConfigMap},
		{verb: "renew", group: names.RegisterGroup, resource: "managedclusters", subresource: "clientcertificates", name: "cluster1"},
	} {
		wantAllowed(t, agent, own)
	}
}

// TestIsolationByDeed tries instead of asking, because admission has a say that
// an access review does not know. Nothing takes effect.
func TestIsolationByDeed(t *testing.T) {
	t.Parallel()
	hub := fleet.client(t, "hub")
	awaitCondition(t, hub, "cluster1", clusterv1.ManagedClusterConditionJoined)
	agent := client.NewDryRunClient(newClient(t, fleet.agentConfig(t, "cluster1")))

	// attempt writes a change of the cluster as it is now; the hub's writers may
	// come in between, which says nothing about the right to change it.
	attempt := func(change func(*clusterv1.ManagedCluster)) error {
		return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			var own clusterv1.ManagedCluster
			if err := agent.Get(t.Context(), client.ObjectKey{Name: "cluster1"}, &own); err != nil {
				return err
			}
			change(&own)
			return agent.Update(t.Context(), &own)
		})
	}
	for name, change := range map[string]func(*clusterv1.ManagedCluster){
		"labels":         func(c *clusterv1.ManagedCluster) { c.Labels = map[string]string{names.LabelClusterSet: "prod"} },
		"taints":         func(c *clusterv1.ManagedCluster) { c.Spec.Taints = nil; c.Spec.Taints = append(c.Spec.Taints, taint()) },
		"lease duration": func(c *clusterv1.ManagedCluster) { c.Spec.LeaseDurationSeconds = 86400 },
		"finalizers":     func(c *clusterv1.ManagedCluster) { c.Finalizers = nil },
		"hub annotations": func(c *clusterv1.ManagedCluster) {
			c.Annotations = map[string]string{names.AnnotationForceDetach: "true"}
		},
		"a URL that is not https": func(c *clusterv1.ManagedCluster) {
			c.Spec.ManagedClusterClientConfigs = []clusterv1.ClientConfig{{URL: "http://a"}}
		},
	} {
		if err := attempt(change); !refused(err) {
			t.Errorf("changing %s of its own cluster: %v", name, err)
		}
	}

	t.Run("an agent may leave but not let itself in", func(t *testing.T) {
		if err := attempt(func(c *clusterv1.ManagedCluster) { c.Spec.HubAcceptsClient = false }); err != nil {
			t.Errorf("setting hubAcceptsClient to false: %v", err)
		}
		denied := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "e2e-created"}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true}}
		if err := agent.Create(t.Context(), denied); !refused(err) {
			t.Errorf("creating an accepted cluster: %v", err)
		}
	})
	t.Run("an agent may not say what the hub says of it", func(t *testing.T) {
		forged := []byte(`{"status":{"conditions":[{"type":"HubAcceptedManagedCluster","status":"False","reason":"HubClusterAdminDenied","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`)
		own := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "cluster1"}}
		if err := agent.Status().Patch(t.Context(), own, client.RawPatch("application/merge-patch+json", forged)); !refused(err) {
			t.Errorf("writing that the hub denied it: %v", err)
		}
	})
	t.Run("an agent may not make requests for a neighbour", func(t *testing.T) {
		neighbours := request{cluster: "cluster2", commonName: names.AgentUser("cluster2", "a"), organizations: []string{names.ClusterGroup("cluster2")}}.object(t)
		neighbours.Spec.Usages = []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth}
		if err := agent.Create(t.Context(), neighbours); !refused(err) {
			t.Errorf("a request that counts for cluster2: %v", err)
		}
	})
	t.Run("another cluster's objects are out of reach", func(t *testing.T) {
		for _, obj := range []client.Object{
			&clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "cluster2"}},
			&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster2", Name: names.ManagedClusterLease}},
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster2", Name: "any"}},
		} {
			if err := agent.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); !apierrors.IsForbidden(err) {
				t.Errorf("reading %T: %v", obj, err)
			}
			if err := agent.Delete(t.Context(), obj); !refused(err) {
				t.Errorf("deleting %T: %v", obj, err)
			}
		}
	})
}

// TestAcceptRight shows that hubAcceptsClient is guarded by its own right.
func TestAcceptRight(t *testing.T) {
	t.Parallel()
	hub := fleet.client(t, "hub")
	editor := rbacv1.PolicyRule{APIGroups: []string{names.GroupCluster}, Resources: []string{"managedclusters"}, Verbs: []string{"*"}}
	accepter := rbacv1.PolicyRule{APIGroups: []string{names.RegisterGroup}, Resources: []string{names.ResourceAccept}, Verbs: []string{"update"}}
	grant(t, hub, "e2e-editor", editor)
	grant(t, hub, "e2e-accepter", editor, accepter)
	cluster := func() *clusterv1.ManagedCluster {
		return &clusterv1.ManagedCluster{
			ObjectMeta: metav1.ObjectMeta{Name: "e2e-accept"},
			Spec:       clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
		}
	}
	eventually(t, "an editor is refused", func(ctx context.Context) error {
		err := client.NewDryRunClient(impersonate(t, "e2e-editor")).Create(ctx, cluster())
		if err == nil {
			t.Fatal("an editor without the right accepted a cluster")
		}
		if !refused(err) {
			return err
		}
		return nil
	})
	eventually(t, "an accepter is let through", func(ctx context.Context) error {
		return client.NewDryRunClient(impersonate(t, "e2e-accepter")).Create(ctx, cluster())
	})
}

// TestRootOfTrust: nobody but a cluster's agent says whose tokens are the
// cluster's, and no cluster is given a namespace that is not one's.
func TestRootOfTrust(t *testing.T) {
	t.Parallel()
	hub := fleet.client(t, "hub")
	awaitCondition(t, hub, "cluster1", clusterv1.ManagedClusterConditionJoined)
	grant(t, hub, "e2e-configmaps", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create"}})
	editor := client.NewDryRunClient(impersonate(t, "e2e-configmaps"))
	configMap := func(name string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster1", Name: name}}
	}
	eventually(t, "an editor creates ConfigMaps", func(ctx context.Context) error { return editor.Create(ctx, configMap("e2e-other")) })
	if err := editor.Create(t.Context(), configMap(names.IssuerConfigMap)); !refused(err) {
		t.Errorf("an editor publishes the keys of cluster1: %v", err)
	}
	for _, name := range []string{"default", "kube-public"} {
		foreign := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := client.NewDryRunClient(hub).Create(t.Context(), foreign); !refused(err) {
			t.Errorf("a cluster called %s: %v", name, err)
		}
	}
}

// TestHostileRequests sends what a compromised agent of cluster1 could send.
// None of it is ever approved.
func TestHostileRequests(t *testing.T) {
	t.Parallel()
	hub := fleet.client(t, "hub")
	awaitCondition(t, hub, "cluster1", clusterv1.ManagedClusterConditionJoined)
	config := fleet.agentConfig(t, "cluster1")
	agent := newClient(t, config)
	user := leaf(t, fleet.client(t, "cluster1"), names.HubKubeconfigSecret).Subject.CommonName

	good := func() request {
		return request{
			cluster: "cluster1", commonName: user,
			organizations: []string{names.ClusterGroup("cluster1"), names.GroupManagedClusters},
			usages:        []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageClientAuth},
		}
	}
	var hostile []string
	for name, forge := range map[string]func(*request){
		"forged subject":        func(r *request) { r.commonName = names.AgentUser("cluster2", "a") },
		"another agent":         func(r *request) { r.commonName = names.AgentUser("cluster1", "other") },
		"system user":           func(r *request) { r.commonName = "system:admin" },
		"masters":               func(r *request) { r.organizations = append(r.organizations, "system:masters") },
		"another cluster group": func(r *request) { r.organizations = append(r.organizations, names.ClusterGroup("cluster2")) },
		"only another's group":  func(r *request) { r.organizations = []string{names.ClusterGroup("cluster2")} },
		"DNS names":             func(r *request) { r.dnsNames = []string{"kubernetes.default.svc"} },
		"server usage":          func(r *request) { r.usages = append(r.usages, certificatesv1.UsageServerAuth) },
		"missing usage":         func(r *request) { r.usages = r.usages[2:] },
		"another's label":       func(r *request) { r.cluster = "cluster2" },
		"all of cluster2": func(r *request) {
			r.cluster, r.commonName = "cluster2", names.AgentUser("cluster2", "a")
			r.organizations = []string{names.ClusterGroup("cluster2"), names.GroupManagedClusters}
		},
	} {
		r := good()
		forge(&r)
		csr := r.object(t)
		switch err := agent.Create(t.Context(), csr); {
		case err == nil:
			hostile = append(hostile, csr.Name)
			t.Cleanup(func() { _ = hub.Delete(context.WithoutCancel(t.Context()), csr) })
		case !refused(err):
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(hostile) < 5 {
		t.Fatalf("only %d requests reached the hub", len(hostile))
	}
	// What is right is approved, and it was sent after all of the others.
	right := good().object(t)
	if err := agent.Create(t.Context(), right); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = hub.Delete(context.WithoutCancel(t.Context()), right) })
	eventually(t, "a proper renewal is issued", func(ctx context.Context) error {
		if err := hub.Get(ctx, client.ObjectKeyFromObject(right), right); err != nil {
			return err
		}
		if len(right.Status.Certificate) == 0 {
			return fmt.Errorf("conditions %+v", right.Status.Conditions)
		}
		return nil
	})
	for _, name := range hostile {
		var csr certificatesv1.CertificateSigningRequest
		if err := hub.Get(t.Context(), client.ObjectKey{Name: name}, &csr); err != nil {
			t.Error(err)
			continue
		}
		for _, c := range csr.Status.Conditions {
			if c.Type == certificatesv1.CertificateApproved {
				t.Errorf("approved: %s %s", name, csr.Spec.Request)
			}
		}
	}
}

// request is a CSR to forge.
type request struct {
	cluster, commonName     string
	organizations, dnsNames []string
	usages                  []certificatesv1.KeyUsage
}

func (r request) object(t *testing.T) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject:  pkix.Name{CommonName: r.commonName, Organization: r.organizations},
		DNSNames: r.dnsNames,
	}, key)
	if err != nil {
		t.Fatal(err)
	}
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "cluster1-e2e-", Labels: map[string]string{names.LabelClusterName: r.cluster}},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			SignerName: certificatesv1.KubeAPIServerClientSignerName,
			Usages:     r.usages,
		},
	}
}

func taint() clusterv1.Taint {
	return clusterv1.Taint{Key: "e2e", Effect: clusterv1.TaintEffectNoSelect, TimeAdded: metav1.Now()}
}

// refused reports whether RBAC, an admission policy or validation said no.
func refused(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && (apierrors.IsForbidden(err) || apierrors.IsInvalid(err))
}
