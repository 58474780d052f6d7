package certificate

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"net"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pemutil"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/csr"
)

// asked is a request of the agent of c1, and what it asks for.
type asked struct {
	object   *certificatesv1.CertificateSigningRequest
	template *x509.CertificateRequest
	signer   *addonv1alpha1.CustomSignerRegistrationConfig
	// curve is that of the key, P-256 if nil.
	curve elliptic.Curve
	// cut leaves the request out.
	cut bool
}

func TestVet(t *testing.T) {
	t.Parallel()
	addOn := &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "a"}}
	for name, test := range map[string]struct {
		change func(*asked)
		want   string
	}{
		"as it should be": {func(*asked) {}, ""},
		"with the group of old agents": {func(a *asked) {
			a.template.Subject.Organization = append(a.template.Subject.Organization, authenticated)
		}, ""},
		"by an agent on AWS":            {func(a *asked) { a.object.Spec.Groups = []string{names.MappedClusterGroup("c1")} }, ""},
		"a cluster that begins alike":   {func(a *asked) { a.object.Spec.Groups = []string{names.ClusterGroup("c10")} }, "not the agent of cluster c1"},
		"a name that begins alike only": {func(a *asked) { a.object.Spec.Groups = nil }, "not the agent of cluster c1"},
		"another user":                  {func(a *asked) { a.template.Subject.CommonName += "x" }, "common name"},
		"one group is missing":          {func(a *asked) { a.template.Subject.Organization = a.template.Subject.Organization[:1] }, "organizations"},
		"masters": {func(a *asked) {
			a.template.Subject.Organization = append(a.template.Subject.Organization, "system:masters")
		}, "organizations"},
		"an organizational unit": {func(a *asked) { a.template.Subject.OrganizationalUnit = []string{"u"} }, "organizational units"},
		"a server":               {func(a *asked) { a.object.Spec.Usages = []certificatesv1.KeyUsage{certificatesv1.UsageServerAuth} }, "usage"},
		"a DNS name":             {func(a *asked) { a.template.DNSNames = []string{"example.com"} }, "DNS name"},
		"an address":             {func(a *asked) { a.template.IPAddresses = []net.IP{net.IPv4(1, 2, 3, 4)} }, "alternative names"},
		"a weak key":             {func(a *asked) { a.curve = elliptic.P224() }, "P-224"},
		"a country":              {func(a *asked) { a.template.Subject.Country = []string{"x"} }, "the subject has"},
		"no request":             {func(a *asked) { a.cut = true }, "certificate request"},
		"the subject of the template": {func(a *asked) {
			a.signer = &addonv1alpha1.CustomSignerRegistrationConfig{Subject: &addonv1alpha1.Subject{User: "u", Groups: []string{"g"}, OrganizationUnits: []string{"o"}}}
			a.template.Subject = pkix.Name{CommonName: "u", Organization: []string{"g"}, OrganizationalUnit: []string{"o"}}
		}, ""},
		"not the subject of the template": {func(a *asked) {
			a.signer = &addonv1alpha1.CustomSignerRegistrationConfig{Subject: &addonv1alpha1.Subject{User: "u", Groups: []string{"g"}}}
		}, "common name"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := &asked{object: &certificatesv1.CertificateSigningRequest{}, template: &x509.CertificateRequest{
				Subject: pkix.Name{
					CommonName:   names.AddOnUser("c1", "a", "a-agent"),
					Organization: []string{names.AddOnClusterGroup("c1", "a"), names.AddOnGroup("a")},
				},
				DNSNames: []string{names.AddOnDNSName("a")},
			}}
			a.object.Spec.Username, a.object.Spec.Groups, a.object.Spec.Usages = names.AgentUser("c1", "x"), []string{names.ClusterGroup("c1")}, csr.Usages()
			test.change(a)
			key, err := ecdsa.GenerateKey(cmp.Or(a.curve, elliptic.P256()), rand.Reader)
			if err != nil {
				t.Fatal(err)
			}
			der, err := x509.CreateCertificateRequest(rand.Reader, a.template, key)
			if err != nil {
				t.Fatal(err)
			}
			if !a.cut {
				a.object.Spec.Request = pemutil.EncodeRequest(der)
			}
			registration := &addonv1alpha1.RegistrationSpec{Type: addonv1alpha1.RegistrationTypeKubeClient}
			if a.signer != nil {
				registration = &addonv1alpha1.RegistrationSpec{Type: addonv1alpha1.RegistrationTypeCustomSigner, CustomSigner: a.signer}
			}
			_, err = vet(a.object, addOn, registration)
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
}
