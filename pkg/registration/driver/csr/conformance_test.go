package csr_test

import (
	"crypto/x509"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/kubeconfig"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/csr"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/drivertest"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	cp := controlplane.Lease(t)
	admin := cp.Client(t)
	for _, o := range []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "join"}, Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"certificatesigningrequests"}, Verbs: []string{"create", "get", "list", "watch"},
		}}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "join"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "join"},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "joiner"}},
		},
	} {
		if err := admin.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	joiner := cp.ConfigFor(t, "joiner")
	clients, err := kubernetes.NewForConfig(cp.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	address, err := kubeconfig.ParseHub(cp.KubeconfigFor(t, "joiner"))
	if err != nil {
		t.Fatal(err)
	}
	decide := func(typ certificatesv1.RequestConditionType) func(*testing.T, driver.Identity) {
		return func(t *testing.T, id driver.Identity) {
			t.Helper()
			requests := clients.CertificatesV1().CertificateSigningRequests()
			list, err := requests.List(t.Context(), metav1.ListOptions{LabelSelector: names.LabelClusterName + "=" + id.Cluster})
			if err != nil || len(list.Items) != 1 {
				t.Fatalf("%d requests of %s, %v", len(list.Items), id.Cluster, err)
			}
			c := &list.Items[0]
			if _, err := csr.Vet(c); err != nil {
				t.Errorf("the hub's side of the driver refuses the agent's side: %v", err)
			}
			c.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: typ, Status: corev1.ConditionTrue, Reason: "Test"}}
			if _, err := requests.UpdateApproval(t.Context(), c.Name, c, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Run("agent", func(t *testing.T) {
		t.Parallel()
		drivertest.RunAgent(t, drivertest.AgentSuite{
			New: func(id driver.Identity) driver.Agent {
				return csr.NewAgent(csr.AgentConfig{Identity: id, ExpirationSeconds: 3600, Clock: clock.RealClock{}})
			},
			Hub:     joiner,
			Address: address,
			User:    func(id driver.Identity) string { return names.AgentUser(id.Cluster, id.Agent) },
			Grant:   decide(certificatesv1.CertificateApproved),
			Refuse:  decide(certificatesv1.CertificateDenied),
		})
	})
	for kind, registration := range map[string]addonv1beta1.RegistrationConfig{
		"kube-client":   kubeClient("", ""),
		"custom-signer": customSigner("me", []string{"us"}, []string{"ou"}),
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			judge := addOnHubSide{clients: clients}
			drivertest.RunAddOn(t, drivertest.AddOnSuite{
				New: func(addOn *addonv1beta1.ManagedClusterAddOn) driver.AddOn {
					return csr.NewAddOn(csr.AddOnConfig{
						Cluster: addOn.Namespace, AddOn: addOn, Registration: addOn.Status.Registrations[0], ExpirationSeconds: 3600, Clock: clock.RealClock{},
					})
				},
				Registration: registration,
				Prefix:       kind,
				Hub:          func(*testing.T, string) *rest.Config { return joiner },
				Grant:        judge.approve,
				Refuse:       judge.deny,
			})
		})
	}
}

// addOnHubSide approves or denies an add-on's requests, and signs what the hub
// itself does not.
type addOnHubSide struct {
	clients kubernetes.Interface
}

func (h addOnHubSide) approve(t *testing.T, addOn *addonv1beta1.ManagedClusterAddOn) {
	t.Helper()
	c := h.decide(t, addOn, certificatesv1.CertificateApproved)
	if c.Spec.SignerName == certificatesv1.KubeAPIServerClientSignerName {
		return
	}
	c.Status.Certificate = signedFor(t, *c, func(x *x509.Certificate) {
		x.NotBefore, x.NotAfter = c.CreationTimestamp.Time, c.CreationTimestamp.Add(time.Hour)
	})
	if _, err := h.clients.CertificatesV1().CertificateSigningRequests().UpdateStatus(t.Context(), c, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (h addOnHubSide) deny(t *testing.T, addOn *addonv1beta1.ManagedClusterAddOn) {
	t.Helper()
	h.decide(t, addOn, certificatesv1.CertificateDenied)
}

func (h addOnHubSide) decide(t *testing.T, addOn *addonv1beta1.ManagedClusterAddOn, typ certificatesv1.RequestConditionType) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	requests := h.clients.CertificatesV1().CertificateSigningRequests()
	list, err := requests.List(t.Context(), metav1.ListOptions{LabelSelector: names.LabelClusterName + "=" + addOn.Namespace + "," + names.LabelAddOnName + "=" + addOn.Name})
	if err != nil || len(list.Items) != 1 {
		t.Fatalf("%d requests of %s/%s, %v", len(list.Items), addOn.Namespace, addOn.Name, err)
	}
	c := &list.Items[0]
	c.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: typ, Status: corev1.ConditionTrue, Reason: "Test"}}
	decided, err := requests.UpdateApproval(t.Context(), c.Name, c, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return decided
}
