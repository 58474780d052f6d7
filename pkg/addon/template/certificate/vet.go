package certificate

import (
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/template/source"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pemutil"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/csr"
)

// authenticated is the group that agents of old versions ask for besides their own.
const authenticated = "system:authenticated"

// registrationFor returns the registration of a template that a signer is for.
func registrationFor(template *addonv1alpha1.AddOnTemplateSpec, signer string) (found *addonv1alpha1.RegistrationSpec) {
	for i := range template.Registration {
		r := &template.Registration[i]
		switch r.Type {
		case addonv1alpha1.RegistrationTypeKubeClient:
			if signer == certificatesv1.KubeAPIServerClientSignerName {
				return r
			}
		case addonv1alpha1.RegistrationTypeCustomSigner:
			if r.CustomSigner != nil && signer == r.CustomSigner.SignerName {
				found = r
			}
		}
	}
	return found
}

// reserved reports whether a signer is Kubernetes' own.
// See https://kubernetes.io/docs/reference/access-authn-authz/certificate-signing-requests/#kubernetes-signers.
func reserved(signer string) bool {
	domain, _, _ := strings.Cut(signer, "/")
	return domain == "kubernetes.io" || strings.HasSuffix(domain, ".kubernetes.io") || domain == "k8s.io" || strings.HasSuffix(domain, ".k8s.io")
}

func errReserved(signer string) error {
	return fmt.Errorf("%s is a signer of Kubernetes, which an AddOnTemplate cannot use as a custom one", signer)
}

// vet returns the certificate request of an add-on, or says in one sentence why it is not
// one that the add-on may make.
func vet(object *certificatesv1.CertificateSigningRequest, addOn *addonv1beta1.ManagedClusterAddOn, registration *addonv1alpha1.RegistrationSpec) (*x509.CertificateRequest, error) {
	groups := []string{names.ClusterGroup(addOn.Namespace), names.MappedClusterGroup(addOn.Namespace)}
	if !slices.ContainsFunc(groups, func(g string) bool { return slices.Contains(object.Spec.Groups, g) }) {
		return nil, fmt.Errorf("%s is not the agent of cluster %s", object.Spec.Username, addOn.Namespace)
	}
	for _, usage := range object.Spec.Usages {
		if !slices.Contains(csr.Usages(), usage) {
			return nil, fmt.Errorf("the usage %q is not one of a client", usage)
		}
	}
	request, err := pemutil.ParseRequest(object.Spec.Request)
	if err != nil {
		return nil, err
	}
	if err := csr.VetKey(request.PublicKey); err != nil {
		return nil, err
	}
	want := addonv1beta1.Subject{BaseSubject: source.Default(addOn)}
	if registration.Type == addonv1alpha1.RegistrationTypeCustomSigner {
		// The hub's API server trusts what these signers sign, and a template names any subject.
		if reserved(object.Spec.SignerName) {
			return nil, errReserved(object.Spec.SignerName)
		}
		want = source.Subject(addOn, registration.CustomSigner)
	}
	if request.Subject.CommonName != want.User {
		return nil, fmt.Errorf("the common name is %q and not %q", request.Subject.CommonName, want.User)
	}
	if got := sets.New(request.Subject.Organization...).Delete(authenticated); !got.Equal(sets.New(want.Groups...).Delete(authenticated)) {
		return nil, fmt.Errorf("the organizations are %q and not %q", sets.List(got), want.Groups)
	}
	if !sets.New(request.Subject.OrganizationalUnit...).Equal(sets.New(want.OrganizationUnits...)) {
		return nil, fmt.Errorf("the organizational units are %q and not %q", request.Subject.OrganizationalUnit, want.OrganizationUnits)
	}
	if n := len(request.Subject.Organization) + len(request.Subject.OrganizationalUnit) + 1; len(request.Subject.Names) != n {
		return nil, errors.New("the subject has more than a common name, organizations and organizational units")
	}
	return request, alternativeNames(request, addOn.Name)
}

// alternativeNames refuses names of others.
func alternativeNames(request *x509.CertificateRequest, addOn string) error {
	if len(request.IPAddresses)+len(request.EmailAddresses)+len(request.URIs) > 0 {
		return errors.New("the request has alternative names that are not DNS names")
	}
	for _, name := range request.DNSNames {
		if name != names.AddOnDNSName(addOn) {
			return fmt.Errorf("the DNS name %q is not the add-on's", name)
		}
	}
	return nil
}
