package csr_test

import (
	"crypto/x509"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pemutil"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/csr"
)

const (
	addOnUser    = "system:open-cluster-management:cluster:cluster1:addon:a:agent:a"
	addOnGroup   = "system:open-cluster-management:addon:a"
	clusterGroup = "system:open-cluster-management:cluster:cluster1:addon:a"
	signer       = "example.com/addon-signer"
)

func kubeClient(driver, user string, groups ...string) addonv1beta1.RegistrationConfig {
	return addonv1beta1.RegistrationConfig{Type: addonv1beta1.KubeClient, KubeClient: &addonv1beta1.KubeClientConfig{
		Driver: driver, Subject: addonv1beta1.KubeClientSubject{BaseSubject: addonv1beta1.BaseSubject{User: user, Groups: groups}},
	}}
}

func customSigner(user string, groups, units []string) addonv1beta1.RegistrationConfig {
	return addonv1beta1.RegistrationConfig{Type: addonv1beta1.CustomSigner, CustomSigner: &addonv1beta1.CustomSignerConfig{
		SignerName: signer,
		Subject:    addonv1beta1.Subject{BaseSubject: addonv1beta1.BaseSubject{User: user, Groups: groups}, OrganizationUnits: units},
	}}
}

// addOnWorld is a hub that is only an object store, and an add-on's driver.
type addOnWorld struct {
	*world
	driver driver.AddOn
}

func newAddOnWorld(registration addonv1beta1.RegistrationConfig) *addOnWorld {
	w := &addOnWorld{world: &world{hub: newHub(), clock: testingclock.NewFakePassiveClock(epoch)}}
	w.restart(registration)
	return w
}

func addOn(name string) *addonv1beta1.ManagedClusterAddOn {
	return &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster1", Name: name}}
}

func (w *addOnWorld) restart(registration addonv1beta1.RegistrationConfig) {
	w.driver = csr.NewAddOn(csr.AddOnConfig{Cluster: "cluster1", AddOn: addOn("a"), Registration: registration, ExpirationSeconds: 3600, Clock: w.clock})
}

// step takes steps until one waits or is done.
func (w *addOnWorld) step(t *testing.T) driver.Step {
	t.Helper()
	return w.steps(t, func() (driver.Step, error) { return w.driver.Obtain(t.Context(), w.hub, w.pending) })
}

func TestAddOnDeclares(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		in   addonv1beta1.RegistrationConfig
		want addonv1beta1.RegistrationConfig
	}{
		{name: "an empty kubeClient", in: addonv1beta1.RegistrationConfig{Type: addonv1beta1.KubeClient}, want: kubeClient("csr", addOnUser, clusterGroup, addOnGroup)},
		{name: "a user alone", in: kubeClient("", "me"), want: kubeClient("csr", "me", clusterGroup, addOnGroup)},
		{name: "a whole subject", in: kubeClient("csr", "me", "us"), want: kubeClient("csr", "me", "us")},
		{name: "the token driver's subject", in: kubeClient("token", "system:serviceaccount:cluster1:cluster1-a-agent"), want: kubeClient("csr", addOnUser, clusterGroup, addOnGroup)},
		{name: "an empty custom signer", in: addonv1beta1.RegistrationConfig{Type: addonv1beta1.CustomSigner}, want: addonv1beta1.RegistrationConfig{
			Type:         addonv1beta1.CustomSigner,
			CustomSigner: &addonv1beta1.CustomSignerConfig{Subject: addonv1beta1.Subject{BaseSubject: addonv1beta1.BaseSubject{User: addOnUser}}},
		}},
		{name: "a custom signer's subject", in: customSigner("me", []string{"us"}, []string{"ou"}), want: customSigner("me", []string{"us"}, []string{"ou"})},
		{name: "a custom signer without user", in: customSigner("", []string{"us"}, nil), want: customSigner(addOnUser, []string{"us"}, nil)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			before := tc.in.DeepCopy()
			got := newAddOnWorld(tc.in).driver.Declare()
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if diff := cmp.Diff(got, newAddOnWorld(got).driver.Declare()); diff != "" {
				t.Errorf("declared, it declares something else: %s", diff)
			}
			if diff := cmp.Diff(*before, tc.in); diff != "" {
				t.Errorf("it changed what it was given: %s", diff)
			}
		})
	}
}

func TestAddOnRequestOnTheWire(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		in     addonv1beta1.RegistrationConfig
		signer string
		cn     string
		orgs   string
		units  string
	}{
		{name: "kubeClient", in: kubeClient("csr", ""), signer: "kubernetes.io/kube-apiserver-client", cn: addOnUser, orgs: fmt.Sprint([]string{addOnGroup, clusterGroup}), units: "[]"},
		{name: "customSigner", in: customSigner("me", []string{"b", "a", "b"}, []string{"ou"}), signer: signer, cn: "me", orgs: "[a b]", units: "[ou]"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := newAddOnWorld(tc.in)
			if step := w.step(t); step.Waiting.Reason != csr.ReasonRequested || step.Watch == nil || !strings.Contains(step.Waiting.Message, "hub controller of add-on a") {
				t.Errorf("waiting: %+v", step.Waiting)
			}
			got := w.csrs(t)[0]
			if !strings.HasPrefix(got.Name, "addon-cluster1-a-") || got.Spec.SignerName != tc.signer || *got.Spec.ExpirationSeconds != 3600 {
				t.Errorf("got %+v", got)
			}
			labels := map[string]string{"open-cluster-management.io/cluster-name": "cluster1", "open-cluster-management.io/addon-name": "a"}
			if diff := cmp.Diff(labels, got.Labels); diff != "" {
				t.Errorf("labels: %s", diff)
			}
			if fmt.Sprint(got.Spec.Usages) != "[digital signature key encipherment client auth]" {
				t.Errorf("usages %v", got.Spec.Usages)
			}
			parsed, err := pemutil.ParseRequest(got.Spec.Request)
			if err != nil {
				t.Fatal(err)
			}
			if s := parsed.Subject; s.CommonName != tc.cn || fmt.Sprint(s.Organization) != tc.orgs || fmt.Sprint(s.OrganizationalUnit) != tc.units {
				t.Errorf("subject %v", s)
			}
			if fmt.Sprint(parsed.DNSNames) != "[a.addon.open-cluster-management.io]" {
				t.Errorf("DNS names %v", parsed.DNSNames)
			}
			if _, err := csr.Vet(&got); err == nil {
				t.Error("the hub would take it for a cluster's registration")
			}
		})
	}
}

// A request goes on after any number of restarts, and another subject or signer
// is another request with another key.
func TestAddOnAsksOncePerSubject(t *testing.T) {
	t.Parallel()
	w := newAddOnWorld(kubeClient("csr", ""))
	for range 5 {
		w.step(t)
		w.restart(kubeClient("csr", ""))
	}
	if got := len(w.csrs(t)); got != 1 {
		t.Fatalf("%d requests", got)
	}
	for n, other := range []addonv1beta1.RegistrationConfig{
		kubeClient("csr", "me"), customSigner("me", []string{clusterGroup, addOnGroup}, nil), customSigner("me", []string{clusterGroup, addOnGroup}, []string{"ou"}),
	} {
		w.restart(other)
		w.step(t)
		if got := len(w.csrs(t)); got != n+2 {
			t.Errorf("%d requests after %d other subjects", got, n+1)
		}
	}
}

func TestAddOnNamesThatAreLong(t *testing.T) {
	t.Parallel()
	w := newAddOnWorld(kubeClient("csr", ""))
	w.driver = csr.NewAddOn(csr.AddOnConfig{Cluster: "cluster1", AddOn: addOn(strings.Repeat("a.", 126) + "a"), Registration: kubeClient("csr", ""), Clock: w.clock})
	w.step(t)
	if got := w.csrs(t)[0].Name; len(got) > 253 || strings.Contains(got, ".-") {
		t.Errorf("it would be refused as a name: %s", got)
	}
}

func TestAddOnHaltsAtTenOpenRequests(t *testing.T) {
	t.Parallel()
	w := newAddOnWorld(kubeClient("csr", ""))
	open := func(prefix string, labels map[string]string) {
		for i := range 10 {
			if err := w.hub.Create(t.Context(), asking(t, fmt.Sprint(prefix, i), "me", addOnUser, labels)); err != nil {
				t.Fatal(err)
			}
		}
	}
	open("cluster", map[string]string{names.LabelClusterName: "cluster1"})
	open("other", map[string]string{names.LabelClusterName: "cluster1", names.LabelAddOnName: "b"})
	open("elsewhere", map[string]string{names.LabelClusterName: "cluster2", names.LabelAddOnName: "a"})
	if step := w.step(t); step.Waiting.Reason != csr.ReasonRequested {
		t.Fatalf("got %+v", step.Waiting)
	}
	open("mine", map[string]string{names.LabelClusterName: "cluster1", names.LabelAddOnName: "a"})
	w.pending = nil
	step := w.step(t)
	if step.Waiting.Reason != csr.ReasonHalted || !step.Failing || step.After <= 0 ||
		!strings.Contains(step.Waiting.Message, "open-cluster-management.io/addon-name=a,open-cluster-management.io/cluster-name=cluster1") {
		t.Errorf("got %+v", step)
	}
}

// signedFor is the certificate that a signer makes of a request, changed.
func signedFor(t *testing.T, c certificatesv1.CertificateSigningRequest, change func(*x509.Certificate)) []byte {
	t.Helper()
	parsed, err := pemutil.ParseRequest(c.Spec.Request)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		Subject: parsed.Subject, NotBefore: epoch, NotAfter: epoch.Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	if change != nil {
		change(template)
	}
	return sign(t, parsed.PublicKey, template)
}

func TestAddOnIssued(t *testing.T) {
	t.Parallel()
	custom := customSigner("me", []string{"us", "them"}, []string{"ou"})
	for _, tc := range []struct {
		name   string
		in     addonv1beta1.RegistrationConfig
		change func(*x509.Certificate)
		good   bool
	}{
		{name: "kubeClient", in: kubeClient("csr", ""), good: true},
		{name: "customSigner", in: custom, good: true},
		{name: "customSigner without usages", in: custom, change: func(c *x509.Certificate) { c.ExtKeyUsage = nil }, good: true},
		{name: "kubeClient without usages", in: kubeClient("csr", ""), change: func(c *x509.Certificate) { c.ExtKeyUsage = nil }},
		{name: "for servers", in: custom, change: func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} }},
		{name: "another user", in: custom, change: func(c *x509.Certificate) { c.Subject.CommonName = "you" }},
		{name: "a group more", in: custom, change: func(c *x509.Certificate) { c.Subject.Organization = append(c.Subject.Organization, "x") }},
		{name: "a group less", in: custom, change: func(c *x509.Certificate) { c.Subject.Organization = []string{"us"} }},
		{name: "a unit less", in: custom, change: func(c *x509.Certificate) { c.Subject.OrganizationalUnit = nil }},
		{name: "expired", in: custom, change: func(c *x509.Certificate) { c.NotAfter = epoch }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := newAddOnWorld(tc.in)
			w.step(t)
			request := w.csrs(t)[0]
			w.decide(t, request.Name, certificatesv1.CertificateApproved, nil)
			if step := w.step(t); step.Waiting.Reason != csr.ReasonApproved || !strings.Contains(step.Waiting.Message, request.Spec.SignerName) {
				t.Errorf("approved, it waits as %+v", step.Waiting)
			}
			w.decide(t, request.Name, certificatesv1.CertificateApproved, signedFor(t, request, tc.change))
			step := w.step(t)
			if !tc.good {
				if step.Issued != nil || step.Waiting.Reason != csr.ReasonUnfit {
					t.Errorf("got %+v", step)
				}
				return
			}
			if step.Issued == nil {
				t.Fatalf("got %+v", step.Waiting)
			}
			validity, err := w.driver.Inspect(step.Issued.Data)
			if err != nil || validity != step.Issued.Validity || len(step.Issued.Data) != 2 {
				t.Errorf("got %+v, %v", validity, err)
			}
			stranger := newAddOnWorld(customSigner("you", []string{"us", "them"}, []string{"ou"}))
			if _, err := stranger.driver.Inspect(step.Issued.Data); err == nil {
				t.Error("another subject takes it for its own")
			}
		})
	}
}

func TestAddOnRefused(t *testing.T) {
	t.Parallel()
	w := newAddOnWorld(kubeClient("csr", ""))
	w.step(t)
	w.decide(t, w.csrs(t)[0].Name, certificatesv1.CertificateDenied, nil)
	step := w.step(t)
	if step.Waiting.Reason != csr.ReasonRefused || !step.Failing || step.After <= 0 {
		t.Fatalf("got %+v", step)
	}
	w.clock.SetTime(w.clock.Now().Add(step.After))
	if step := w.step(t); step.Waiting.Reason != csr.ReasonRequested || len(w.csrs(t)) != 2 {
		t.Errorf("it did not ask anew: %+v", step.Waiting)
	}
	var list certificatesv1.CertificateSigningRequestList
	if err := w.hub.List(t.Context(), &list, client.MatchingLabels{names.LabelAddOnName: "a"}); err != nil || len(list.Items) != 2 {
		t.Errorf("%d requests of the add-on, %v", len(list.Items), err)
	}
}

// TestAddOnOfTemplateNamesTheAddOnManager: no hub controller of such an add-on exists.
func TestAddOnOfTemplateNamesTheAddOnManager(t *testing.T) {
	t.Parallel()
	w := newAddOnWorld(customSigner("me", nil, nil))
	made := addOn("a")
	made.Status.ConfigReferences = []addonv1beta1.ConfigReference{{ConfigGroupResource: addonv1beta1.ConfigGroupResource{
		Group: "addon.open-cluster-management.io", Resource: "addontemplates",
	}}}
	w.driver = csr.NewAddOn(csr.AddOnConfig{Cluster: "cluster1", AddOn: made, Registration: customSigner("me", nil, nil), Clock: w.clock})
	waits := func(reason, what string) {
		t.Helper()
		got := w.step(t).Waiting
		if got.Reason != reason || !strings.Contains(got.Message, what) || !strings.Contains(got.Message, "CustomSignersGranted") {
			t.Errorf("%s: %+v", reason, got)
		}
	}
	waits(csr.ReasonRequested, "the add-on manager of the hub to approve CertificateSigningRequest addon-cluster1-a-")
	w.decide(t, w.csrs(t)[0].Name, certificatesv1.CertificateApproved, nil)
	waits(csr.ReasonApproved, "the add-on manager of the hub to sign it for the signer "+signer)
}
