package csr_test

import (
	"crypto"
	"crypto/dsa" //nolint:staticcheck // a key that must be refused
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"net"
	"net/url"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pemutil"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/csr"
)

func newKey(tb testing.TB) *ecdsa.PrivateKey {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	return key
}

func template() *x509.CertificateRequest {
	return &x509.CertificateRequest{Subject: pkix.Name{
		CommonName:   names.AgentUser("c1", "a1"),
		Organization: []string{names.ClusterGroup("c1"), names.GroupManagedClusters},
	}}
}

func signed(tb testing.TB, key crypto.Signer, template *x509.CertificateRequest) []byte {
	tb.Helper()
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	if err != nil {
		tb.Fatal(err)
	}
	return pemutil.EncodeRequest(der)
}

func request(pem []byte) *certificatesv1.CertificateSigningRequest {
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: "c1-x", Labels: map[string]string{names.LabelClusterName: "c1"}},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem,
			SignerName: certificatesv1.KubeAPIServerClientSignerName,
			Usages:     csr.Usages(),
			Username:   names.BootstrapServiceAccountUser,
		},
	}
}

func TestVetReadsARegistration(t *testing.T) {
	t.Parallel()
	key := newKey(t)
	fingerprint, err := pemutil.KeyFingerprint(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	want := csr.Request{
		Identity:    driver.Identity{Cluster: "c1", Agent: "a1"},
		Requester:   names.BootstrapServiceAccountUser,
		Fingerprint: fingerprint,
	}
	one := template()
	one.Subject.Organization = one.Subject.Organization[:1]
	for name, tmpl := range map[string]*x509.CertificateRequest{"two organizations": template(), "one organization": one} {
		got, err := csr.Vet(request(signed(t, key, tmpl)))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got != want {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
		if got.Renewal() {
			t.Errorf("%s: a bootstrap user's request is taken for a renewal", name)
		}
	}
}

// TestVetAcceptsALongLife: the signer caps what it issues.
func TestVetAcceptsALongLife(t *testing.T) {
	t.Parallel()
	object := request(signed(t, newKey(t), template()))
	object.Spec.ExpirationSeconds = new(int32(1<<31 - 1))
	if _, err := csr.Vet(object); err != nil {
		t.Error(err)
	}
}

func TestRequestComparisons(t *testing.T) {
	t.Parallel()
	first := csr.Request{Identity: driver.Identity{Cluster: "c1", Agent: "a1"}, Requester: "u1", Fingerprint: "f1"}
	for _, tc := range []struct {
		name  string
		other func(*csr.Request)
		want  bool
	}{
		{"the same request", func(*csr.Request) {}, false},
		{"another key", func(r *csr.Request) { r.Fingerprint = "f2" }, true},
		{"another requester", func(r *csr.Request) { r.Requester = "u2" }, true},
		{"another cluster", func(r *csr.Request) { r.Identity.Cluster, r.Fingerprint = "c2", "f2" }, false},
	} {
		other := first
		tc.other(&other)
		if got := first.ConflictsWith(other); got != tc.want {
			t.Errorf("%s: rival = %v", tc.name, got)
		}
	}
	first.Requester = names.AgentUser("c1", "a1")
	if !first.Renewal() {
		t.Error("the identity's own request is no renewal")
	}
	first.Requester = names.AgentUser("c1", "a2")
	if first.Renewal() {
		t.Error("another agent's request is a renewal")
	}
}

// TestVetRefuses is the list of hostile and mistaken requests.
func TestVetRefuses(t *testing.T) {
	t.Parallel()
	key := newKey(t)
	for _, tc := range []struct {
		name    string
		subject func(*x509.CertificateRequest)
		object  func(*certificatesv1.CertificateSigningRequest)
		want    csr.Reason
	}{
		{name: "no cluster label", want: csr.NotRegistration, object: func(o *certificatesv1.CertificateSigningRequest) { o.Labels = nil }},
		{name: "an add-on's label", want: csr.NotRegistration, object: func(o *certificatesv1.CertificateSigningRequest) { o.Labels[names.LabelAddOnName] = "" }},
		{name: "another signer", want: csr.NotRegistration, object: func(o *certificatesv1.CertificateSigningRequest) {
			o.Spec.SignerName = certificatesv1.KubeletServingSignerName
		}},
		{name: "another cluster's label", want: csr.ClusterMismatch, object: func(o *certificatesv1.CertificateSigningRequest) { o.Labels[names.LabelClusterName] = "c2" }},
		{name: "a reserved cluster name", want: csr.ClusterMismatch, object: func(o *certificatesv1.CertificateSigningRequest) {
			o.Labels[names.LabelClusterName] = "managed-clusters"
		}},
		{name: "no PEM", want: csr.MalformedRequest, object: func(o *certificatesv1.CertificateSigningRequest) { o.Spec.Request = []byte("x") }},
		{name: "nothing", want: csr.MalformedRequest, object: func(o *certificatesv1.CertificateSigningRequest) { o.Spec.Request = nil }},
		{name: "two PEM blocks", want: csr.MalformedRequest, object: func(o *certificatesv1.CertificateSigningRequest) {
			o.Spec.Request = append(o.Spec.Request, o.Spec.Request...)
		}},
		{name: "another key's signature", want: csr.MalformedRequest, object: func(o *certificatesv1.CertificateSigningRequest) {
			o.Spec.Request = forged(t, o.Spec.Request)
		}},
		{name: "an extra usage", want: csr.WrongUsages, object: func(o *certificatesv1.CertificateSigningRequest) {
			o.Spec.Usages = append(o.Spec.Usages, certificatesv1.UsageServerAuth)
		}},
		{name: "a missing usage", want: csr.WrongUsages, object: func(o *certificatesv1.CertificateSigningRequest) { o.Spec.Usages = o.Spec.Usages[1:] }},
		{name: "a usage twice", want: csr.WrongUsages, object: func(o *certificatesv1.CertificateSigningRequest) {
			o.Spec.Usages = append(o.Spec.Usages[:2], o.Spec.Usages[1])
		}},
		{name: "too short a life", want: csr.WrongExpiration, object: func(o *certificatesv1.CertificateSigningRequest) { o.Spec.ExpirationSeconds = new(int32(599)) }},
		{name: "a negative life", want: csr.WrongExpiration, object: func(o *certificatesv1.CertificateSigningRequest) { o.Spec.ExpirationSeconds = new(int32(-1)) }},
		{name: "a forged subject", want: csr.ClusterMismatch, subject: func(r *x509.CertificateRequest) { r.Subject.CommonName = names.AgentUser("c2", "a1") }},
		{name: "an admin's name", want: csr.WrongCommonName, subject: func(r *x509.CertificateRequest) { r.Subject.CommonName = "system:admin" }},
		{name: "no agent", want: csr.WrongCommonName, subject: func(r *x509.CertificateRequest) { r.Subject.CommonName = names.AgentUser("c1", "") }},
		{name: "an add-on's name", want: csr.WrongCommonName, subject: func(r *x509.CertificateRequest) {
			r.Subject.CommonName = "system:open-cluster-management:cluster:c1:addon:a:agent:a"
		}},
		{name: "masters as well", want: csr.WrongOrganization, subject: func(r *x509.CertificateRequest) {
			r.Subject.Organization = append(r.Subject.Organization, "system:masters")
		}},
		{name: "another cluster's group as well", want: csr.WrongOrganization, subject: func(r *x509.CertificateRequest) {
			r.Subject.Organization = []string{names.ClusterGroup("c1"), names.ClusterGroup("c2")}
		}},
		{name: "the common group alone", want: csr.WrongOrganization, subject: func(r *x509.CertificateRequest) {
			r.Subject.Organization = []string{names.GroupManagedClusters}
		}},
		{name: "no organization", want: csr.WrongOrganization, subject: func(r *x509.CertificateRequest) { r.Subject.Organization = nil }},
		{name: "an organization that is no string", want: csr.WrongOrganization, subject: func(r *x509.CertificateRequest) {
			r.Subject.ExtraNames = []pkix.AttributeTypeAndValue{{Type: asn1.ObjectIdentifier{2, 5, 4, 10}, Value: 1}}
			r.Subject.Organization = []string{names.ClusterGroup("c1")}
		}},
		{name: "an organizational unit", want: csr.ExtraSubject, subject: func(r *x509.CertificateRequest) { r.Subject.OrganizationalUnit = []string{"x"} }},
		{name: "two common names", want: csr.WrongCommonName, subject: func(r *x509.CertificateRequest) {
			r.Subject.ExtraNames = []pkix.AttributeTypeAndValue{
				{Type: asn1.ObjectIdentifier{2, 5, 4, 3}, Value: "system:admin"},
				{Type: asn1.ObjectIdentifier{2, 5, 4, 3}, Value: names.AgentUser("c1", "a1")},
			}
		}},
		{name: "a DNS name", want: csr.ExtraNames, subject: func(r *x509.CertificateRequest) { r.DNSNames = []string{"kubernetes"} }},
		{name: "an IP address", want: csr.ExtraNames, subject: func(r *x509.CertificateRequest) { r.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)} }},
		{name: "an email address", want: csr.ExtraNames, subject: func(r *x509.CertificateRequest) { r.EmailAddresses = []string{"a@b"} }},
		{name: "a URI", want: csr.ExtraNames, subject: func(r *x509.CertificateRequest) {
			r.URIs = []*url.URL{{Scheme: "spiffe", Host: "hub", Path: "/admin"}}
		}},
		{name: "a CA's extension", want: csr.ExtraExtensions, subject: func(r *x509.CertificateRequest) {
			r.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 19}, Critical: true, Value: []byte{0x30, 0x03, 0x01, 0x01, 0xff}}}
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			tmpl := template()
			if tc.subject != nil {
				tc.subject(tmpl)
			}
			object := request(signed(t, key, tmpl))
			if tc.object != nil {
				tc.object(object)
			}
			_, err := csr.Vet(object)
			if got := rejection(t, err).Reason; got != tc.want {
				t.Errorf("got %s (%v), want %s", got, err, tc.want)
			}
		})
	}
}

// forged breaks the signature of a request.
func forged(tb testing.TB, pem []byte) []byte {
	tb.Helper()
	req, err := pemutil.ParseRequest(pem)
	if err != nil {
		tb.Fatal(err)
	}
	der := append([]byte{}, req.Raw...)
	der[len(der)-1] ^= 1
	return pemutil.EncodeRequest(der)
}

func rejection(t *testing.T, err error) *csr.RejectionError {
	t.Helper()
	refused, ok := errors.AsType[*csr.RejectionError](err)
	if !ok {
		t.Fatalf("got %v, want a refusal", err)
	}
	return refused
}

func TestVetRefusesWeakKeys(t *testing.T) {
	t.Setenv("GODEBUG", "rsa1024min=0")
	weakRSA, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	weakEC, err := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for name, key := range map[string]crypto.Signer{"RSA 1024": weakRSA, "P-224": weakEC} {
		_, err := csr.Vet(request(signed(t, key, template())))
		if got := rejection(t, err).Reason; got != csr.WeakKey {
			t.Errorf("%s: got %s (%v)", name, got, err)
		}
	}
}

func TestVetAcceptsStrongKeys(t *testing.T) {
	t.Parallel()
	strongRSA, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string]crypto.Signer{"RSA 2048": strongRSA, "Ed25519": edwards}
	for _, curve := range []elliptic.Curve{elliptic.P256(), elliptic.P384(), elliptic.P521()} {
		if keys[curve.Params().Name], err = ecdsa.GenerateKey(curve, rand.Reader); err != nil {
			t.Fatal(err)
		}
	}
	for name, key := range keys {
		if _, err := csr.Vet(request(signed(t, key, template()))); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestVetKeyRefusesUnknownKinds: the signature of such a request cannot be
// checked either, so that vetting reports that first.
func TestVetKeyRefusesUnknownKinds(t *testing.T) {
	t.Parallel()
	for _, key := range []crypto.PublicKey{nil, &dsa.PublicKey{}, "a key"} {
		if got := rejection(t, csr.VetKey(key)).Reason; got != csr.UnsupportedKey {
			t.Errorf("%T: got %s", key, got)
		}
	}
}

// TestVetReportsInOrder takes a request that fails every check and corrects
// what is reported, one by one: the order is part of what people and metrics see.
func TestVetReportsInOrder(t *testing.T) {
	t.Setenv("GODEBUG", "rsa1024min=0")
	weak, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	var key crypto.Signer = weak
	tmpl := template()
	tmpl.Subject.CommonName = "system:admin"
	tmpl.DNSNames = []string{"kubernetes"}
	tmpl.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{1, 2, 3}, Value: []byte{5, 0}}}
	object := request([]byte("x"))
	object.Labels = map[string]string{names.LabelAddOnName: "a"}
	object.Spec.SignerName = certificatesv1.KubeletServingSignerName
	object.Spec.Usages = nil
	object.Spec.ExpirationSeconds = new(int32(1))
	encode := func() { object.Spec.Request = signed(t, key, tmpl) }
	for i, step := range []struct {
		reason  csr.Reason
		message string
		fix     func()
	}{
		{csr.NotRegistration, "no label", func() { object.Labels[names.LabelClusterName] = "managed-clusters" }},
		{csr.NotRegistration, "add-on", func() { delete(object.Labels, names.LabelAddOnName) }},
		{csr.NotRegistration, "signer", func() { object.Spec.SignerName = certificatesv1.KubeAPIServerClientSignerName }},
		{csr.ClusterMismatch, "the label", func() { object.Labels[names.LabelClusterName] = "c1" }},
		{csr.WrongUsages, "usages", func() { object.Spec.Usages = csr.Usages() }},
		{csr.WrongExpiration, "lifetime", func() { object.Spec.ExpirationSeconds = nil }},
		{csr.MalformedRequest, "cannot be parsed", encode},
		{csr.WeakKey, "1024 bits", func() { key = newKey(t); encode() }},
		{csr.WrongCommonName, "system:admin", func() { tmpl.Subject = template().Subject; encode() }},
		{csr.ExtraNames, "alternative names", func() { tmpl.DNSNames = nil; encode() }},
		{csr.ExtraExtensions, "1.2.3", func() { tmpl.ExtraExtensions = nil; encode() }},
	} {
		_, err := csr.Vet(object)
		got := rejection(t, err)
		if got.Reason != step.reason || !strings.Contains(got.Message, step.message) {
			t.Fatalf("step %d: got %s (%s), want %s (%s)", i, got.Reason, got.Message, step.reason, step.message)
		}
		step.fix()
	}
	if _, err := csr.Vet(object); err != nil {
		t.Errorf("the corrected request: %v", err)
	}
}

// FuzzVet: nothing that can be sent makes vetting panic, and what it lets pass
// is the identity of the labelled cluster.
func FuzzVet(f *testing.F) {
	f.Add("c1", "c1", "a1", names.ClusterGroup("c1"), names.GroupManagedClusters, []byte(nil))
	f.Add("c1", "c2", "a:1", "system:masters", "", []byte("-----BEGIN CERTIFICATE REQUEST-----"))
	key := newKey(f)
	f.Fuzz(func(t *testing.T, label, cluster, agent, o1, o2 string, raw []byte) {
		pem := raw
		if len(raw) == 0 {
			der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{
				CommonName: names.AgentUser(cluster, agent), Organization: []string{o1, o2},
			}}, key)
			if err != nil {
				return
			}
			pem = pemutil.EncodeRequest(der)
		}
		object := request(pem)
		object.Labels[names.LabelClusterName] = label
		got, err := csr.Vet(object)
		if err != nil {
			var refusal *csr.RejectionError
			if !errors.As(err, &refusal) || refusal.Reason == "" || refusal.Message == "" {
				t.Fatalf("%v is no refusal with a reason and a message", err)
			}
			return
		}
		if got.Identity.Cluster != label || names.ValidateClusterName(label) != nil {
			t.Errorf("label %q: vetted as %+v", label, got)
		}
	})
}
