package addon_test

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pemutil"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/csr"
)

const signer = "example.com/signer"

// ask creates the request of an add-on as a user.
func (e *env) ask(t *testing.T, user string, groups []string, request *certificatesv1.CertificateSigningRequest, template x509.CertificateRequest) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	key, _, err := pemutil.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &template, key)
	if err != nil {
		t.Fatal(err)
	}
	request.Spec.Request, request.Spec.Usages = pemutil.EncodeRequest(der), csr.Usages()
	if err := e.cp.ClientFor(t, e.cp.ConfigFor(t, user, groups...)).Create(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	return request
}

// wants is the request of an add-on on the cluster c1.
func wants(addOn, signer string) (*certificatesv1.CertificateSigningRequest, x509.CertificateRequest) {
	const cluster = "c1"
	request := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{
		GenerateName: fmt.Sprintf("addon-%s-%s-", cluster, addOn),
		Labels:       map[string]string{names.LabelClusterName: cluster, names.LabelAddOnName: addOn},
	}}
	request.Spec.SignerName = signer
	return request, x509.CertificateRequest{
		Subject: pkix.Name{
			CommonName:   names.AddOnUser(cluster, addOn, addOn+"-agent"),
			Organization: []string{names.AddOnClusterGroup(cluster, addOn), names.AddOnGroup(addOn)},
		},
		DNSNames: []string{names.AddOnDNSName(addOn)},
	}
}

func agentGroups(cluster string) []string {
	return []string{names.ClusterGroup(cluster), names.GroupManagedClusters}
}

// newCertificateEnv is a hub with an add-on on two clusters whose names begin alike, and
// anybody may ask for certificates.
func newCertificateEnv(t *testing.T) *env {
	t.Helper()
	e := newEnv(t)
	e.start(t, nil)
	meta := metav1.ObjectMeta{Name: "ask"}
	e.create(t, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{certificatesv1.GroupName}, Resources: []string{"certificatesigningrequests"}, Verbs: []string{"create", "get"}},
	}}, &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:authenticated"}},
	})
	e.template(t, "a", fmt.Sprintf(kubeClient, "")+`,{"type":"CustomSigner","customSigner":{"signerName":"`+signer+`","signingCA":{"name":"ca"}}}`, agentManifest)
	e.create(t, fleet("a", templated))
	// What the author of a template may not do: name the Secret and the signer of another
	// add-on, or a signer of Kubernetes with a subject of choice.
	e.template(t, "evil", `{"type":"CustomSigner","customSigner":{"signerName":"`+signer+`","signingCA":{"name":"ca"}}},`+
		`{"type":"CustomSigner","customSigner":{"signerName":"kubernetes.io/kube-apiserver-client","subject":{"user":"admin","groups":["admins"]},"signingCA":{"name":"ca"}}}`, agentManifest)
	e.create(t, fleet("evil", templated))
	e.cluster(t, "c1")
	e.cluster(t, "c10")
	e.create(t, addOn("c1", "evil"))
	e.awaitWork(t, deployWork("c1", "evil", 0), "is made", is)
	for _, cluster := range []string{"c1", "c10"} {
		e.create(t, addOn(cluster, "a"))
		e.awaitWork(t, deployWork(cluster, "a", 0), "is made", is)
	}
	return e
}

func (e *env) awaitRequest(t *testing.T, request *certificatesv1.CertificateSigningRequest, what string, wanted func() bool) {
	t.Helper()
	eventually(t, request.Name+" "+what, func(ctx context.Context) (bool, error) {
		e.get(ctx, t, request)
		return wanted(), nil
	}, func() any { return request.Status })
}

func approved(request *certificatesv1.CertificateSigningRequest) bool {
	for _, c := range request.Status.Conditions {
		if c.Type == certificatesv1.CertificateApproved {
			return c.Reason == names.ReasonAutoApproved
		}
	}
	return false
}

// TestCertificates: the agent of a cluster gets certificates for its own add-on, from the
// hub and from the signer of the template, and nobody else does.
func TestCertificates(t *testing.T) {
	t.Parallel()
	e := newCertificateEnv(t)
	agent := names.AgentUser("c1", "agent")
	refused := map[string]*certificatesv1.CertificateSigningRequest{}
	refuse := func(why, user string, groups []string, change func(*certificatesv1.CertificateSigningRequest, *x509.CertificateRequest)) {
		request, template := wants("a", certificatesv1.KubeAPIServerClientSignerName)
		change(request, &template)
		refused[why] = e.ask(t, user, groups, request, template)
	}
	own := agentGroups("c1")
	refuse("somebody who is no agent", "eve", nil, func(*certificatesv1.CertificateSigningRequest, *x509.CertificateRequest) {})
	refuse("another common name", agent, own, func(_ *certificatesv1.CertificateSigningRequest, r *x509.CertificateRequest) {
		r.Subject.CommonName = "system:admin"
	})
	refuse("another organization", agent, own, func(_ *certificatesv1.CertificateSigningRequest, r *x509.CertificateRequest) {
		r.Subject.Organization = append(r.Subject.Organization, names.AddOnGroup("other"))
	})
	refuse("another DNS name", agent, own, func(_ *certificatesv1.CertificateSigningRequest, r *x509.CertificateRequest) {
		r.DNSNames = []string{"example.com"}
	})
	refuse("a signer that is not in the template", agent, own, func(c *certificatesv1.CertificateSigningRequest, _ *x509.CertificateRequest) {
		c.Spec.SignerName = "example.com/other"
	})
	refuse("an add-on that is not there", agent, own, func(c *certificatesv1.CertificateSigningRequest, _ *x509.CertificateRequest) {
		c.Labels[names.LabelAddOnName] = "b"
	})

	e.testSigner(t, agent)
	evil, template := wants("evil", signer)
	refused["a signer that another add-on was granted"] = e.ask(t, agent, own, evil, template)
	e.awaitEvent(t, evil, "may not use the signer")
	told := e.awaitCondition(t, "c1", "evil", names.ConditionCustomSignersGranted, metav1.ConditionFalse, names.ReasonSignerNotGranted)
	if !strings.Contains(told.Message, `"evil:example.com/signer:ca"`) || strings.Contains(told.Message, `"evil:kubernetes.io`) || !strings.Contains(told.Message, "is a signer of Kubernetes") {
		t.Errorf("the condition tells to grant a signer of Kubernetes, or not the other one: %s", told.Message)
	}
	evil, template = wants("evil", certificatesv1.KubeAPIServerClientSignerName)
	template.Subject = pkix.Name{CommonName: "admin", Organization: []string{"admins"}}
	refused["a subject of the template's choice on the hub"] = e.ask(t, agent, own, evil, template)
	e.awaitEvent(t, evil, "is a signer of Kubernetes, which an AddOnTemplate cannot use as a custom one")

	// One request is worked on at a time, and this one comes last.
	request, template := wants("a", certificatesv1.KubeAPIServerClientSignerName)
	request = e.ask(t, agent, agentGroups("c1"), request, template)
	e.awaitRequest(t, request, "has a certificate", func() bool { return approved(request) && len(request.Status.Certificate) > 0 })
	for why, request := range refused {
		e.get(t.Context(), t, request)
		if len(request.Status.Conditions) > 0 {
			t.Errorf("%s: %+v", why, request.Status.Conditions)
		}
	}

	e.template(t, "a", fmt.Sprintf(kubeClient, ""), agentManifest)
	e.awaitAddOn(t, "c1", "a", "has no condition about signers that its template lacks", func(a *addonv1beta1.ManagedClusterAddOn) bool {
		return apimeta.FindStatusCondition(a.Status.Conditions, names.ConditionCustomSignersGranted) == nil
	})
}

// awaitEvent waits for an event of a request that stays as it was.
func (e *env) awaitEvent(t *testing.T, request *certificatesv1.CertificateSigningRequest, part string) {
	t.Helper()
	var notes []string
	eventually(t, "the reason is told", func(ctx context.Context) (bool, error) {
		var list eventsv1.EventList
		err := e.admin.List(ctx, &list)
		notes = nil
		for i := range list.Items {
			if list.Items[i].Regarding.Name == request.Name {
				notes = append(notes, list.Items[i].Note)
			}
		}
		return slices.ContainsFunc(notes, func(note string) bool { return strings.Contains(note, part) }), err
	}, func() any { return notes })
	e.get(t.Context(), t, request)
	if len(request.Status.Conditions) > 0 {
		t.Errorf("%+v", request.Status.Conditions)
	}
}

// testSigner: the signer of a template signs once somebody lets the add-on manager
// approve, sign and read the key for it, and grants it to the add-on.
func (e *env) testSigner(t *testing.T, agent string) {
	t.Helper()
	key, keyPEM, err := pemutil.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	now := clock.RealClock{}.Now()
	ca := &x509.Certificate{
		Subject: pkix.Name{CommonName: "ca"}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, ca, ca, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	meta := metav1.ObjectMeta{Namespace: names.HubNamespace, Name: "ca"}
	e.create(t, &corev1.Secret{ObjectMeta: meta, Type: corev1.SecretTypeTLS, Data: map[string][]byte{corev1.TLSCertKey: authority, corev1.TLSPrivateKeyKey: keyPEM}})
	request, template := wants("a", signer)
	request = e.ask(t, agent, agentGroups("c1"), request, template)
	const all = `sign customsigners.addon.open-cluster-management.io "a:example.com/signer:ca" in namespace open-cluster-management-hub, ` +
		`and approve signers.certificates.k8s.io "example.com/signer", and sign signers.certificates.k8s.io "example.com/signer", ` +
		`and get secrets "ca" in namespace open-cluster-management-hub`
	e.awaitEvent(t, request, all)
	refused := e.awaitCondition(t, "c1", "a", names.ConditionCustomSignersGranted, metav1.ConditionFalse, names.ReasonSignerNotGranted)
	if !strings.Contains(refused.Message, all) {
		t.Errorf("the condition does not name what is missing: %s", refused.Message)
	}
	e.permit(t, "", "signer", rbacv1.PolicyRule{
		APIGroups: []string{certificatesv1.GroupName}, Resources: []string{"signers"}, ResourceNames: []string{signer}, Verbs: []string{"approve", "sign"},
	})
	e.permit(t, names.HubNamespace, "ca", rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"ca"}, Verbs: []string{"get"},
	})
	e.awaitEvent(t, request, `let the ServiceAccount addon-manager-controller-sa sign customsigners.addon.open-cluster-management.io "a:example.com/signer:ca" in namespace `+names.HubNamespace)
	e.permit(t, names.HubNamespace, "grant", rbacv1.PolicyRule{
		APIGroups: []string{addonv1beta1.GroupName}, Resources: []string{"customsigners"}, ResourceNames: []string{"a:" + signer + ":ca"}, Verbs: []string{"sign"},
	})
	e.awaitRequest(t, request, "is signed", func() bool { return approved(request) && len(request.Status.Certificate) > 0 })
	e.awaitCondition(t, "c1", "a", names.ConditionCustomSignersGranted, metav1.ConditionTrue, names.ReasonSignersGranted)
	block, _ := pem.Decode(request.Status.Certificate)
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	if _, err := certificate.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		t.Error(err)
	}
	if certificate.Subject.CommonName != template.Subject.CommonName || certificate.NotAfter.After(ca.NotAfter) {
		t.Errorf("%v until %v", certificate.Subject, certificate.NotAfter)
	}
}
