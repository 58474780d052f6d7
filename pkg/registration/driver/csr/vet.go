package csr

import (
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"fmt"
	"slices"
	"strconv"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/excerpt"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pemutil"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// MinExpiration is the shortest lifetime that a registration may ask for. There
// is no longest: the signer caps what it issues.
const MinExpiration = 10 * time.Minute

const minRSABits = 2048

// Request is what a vetted certificate signing request asks for, and who asks.
type Request struct {
	// Identity is whom the certificate would be for.
	Identity driver.Identity
	// Requester is the user that the API server authenticated when the request
	// was made, not anything that the request itself claims.
	Requester string
	// Fingerprint names the public key, for people to compare.
	Fingerprint string
}

// Renewal reports whether the identity itself asks, which only somebody who
// holds a credential of that identity can do.
func (r Request) Renewal() bool {
	return r.Requester == names.AgentUser(r.Identity.Cluster, r.Identity.Agent)
}

// Rival reports whether two requests claim one cluster without being made by
// the same requester with the same key.
func (r Request) Rival(other Request) bool {
	return r.Identity.Cluster == other.Identity.Cluster &&
		(r.Requester != other.Requester || r.Fingerprint != other.Fingerprint)
}

// Reason says in one CamelCase word why a request is refused.
type Reason string

// The reasons of a RefusalError.
const (
	// NotRegistration is the reason for requests that are somebody else's
	// business: without a cluster's label, of an add-on, for another signer.
	NotRegistration   Reason = "NotRegistration"
	MalformedRequest  Reason = "MalformedRequest"
	WeakKey           Reason = "WeakKey"
	WrongCommonName   Reason = "WrongCommonName"
	WrongOrganization Reason = "WrongOrganization"
	ClusterMismatch   Reason = "ClusterMismatch"
	ExtraSubject      Reason = "ExtraSubject"
	ExtraNames        Reason = "ExtraNames"
	ExtraExtensions   Reason = "ExtraExtensions"
	WrongUsages       Reason = "WrongUsages"
	WrongExpiration   Reason = "WrongExpiration"
)

// RefusalError is the error of Vet.
type RefusalError struct {
	Reason Reason
	// Message is a sentence about what is wrong.
	Message string
}

// Error implements error.
func (r *RefusalError) Error() string { return r.Message }

func refuse(reason Reason, format string, args ...any) error {
	return &RefusalError{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Vet judges a certificate signing request as the registration of a cluster
// (contract B.4, B.5) and reads what it asks for. It looks at the request only:
// whether the requester may have what it asks for is the caller's question.
// Every error is a *RefusalError.
func Vet(csr *certificatesv1.CertificateSigningRequest) (Request, error) {
	cluster := csr.Labels[names.LabelClusterName]
	if err := vetEnvelope(csr, cluster); err != nil {
		return Request{}, err
	}
	x509req, err := pemutil.ParseRequest(csr.Spec.Request)
	if err != nil {
		return Request{}, refuse(MalformedRequest, "the request cannot be read: %v", err)
	}
	if key, ok := x509req.PublicKey.(*rsa.PublicKey); ok && key.N.BitLen() < minRSABits {
		return Request{}, refuse(WeakKey, "the RSA key has %d bits, fewer than %d", key.N.BitLen(), minRSABits)
	}
	agent, err := vetSubject(x509req.Subject, cluster)
	if err != nil {
		return Request{}, err
	}
	if err := vetExtras(x509req); err != nil {
		return Request{}, err
	}
	fingerprint, err := pemutil.KeyFingerprint(x509req.PublicKey)
	if err != nil {
		return Request{}, refuse(MalformedRequest, "the public key cannot be read: %v", err)
	}
	return Request{
		Identity:    driver.Identity{Cluster: cluster, Agent: agent},
		Requester:   csr.Spec.Username,
		Fingerprint: fingerprint,
	}, nil
}

// vetEnvelope judges what surrounds the encoded request.
func vetEnvelope(csr *certificatesv1.CertificateSigningRequest, cluster string) error {
	if cluster == "" {
		return refuse(NotRegistration, "the request has no label %s", names.LabelClusterName)
	}
	if addOn, ok := csr.Labels[names.LabelAddOnName]; ok {
		return refuse(NotRegistration, "the request belongs to the add-on %q", addOn)
	}
	if csr.Spec.SignerName != certificatesv1.KubeAPIServerClientSignerName {
		return refuse(NotRegistration, "the request is for the signer %q", csr.Spec.SignerName)
	}
	if err := names.ValidateClusterName(cluster); err != nil {
		return refuse(ClusterMismatch, "the label %s: %v", names.LabelClusterName, err)
	}
	usages := slices.Sorted(slices.Values(csr.Spec.Usages))
	if !slices.Equal(usages, slices.Sorted(slices.Values(Usages()))) {
		return refuse(WrongUsages, "the usages are %q, not exactly %q", csr.Spec.Usages, Usages())
	}
	if asked := csr.Spec.ExpirationSeconds; asked != nil && *asked < int32(MinExpiration/time.Second) {
		return refuse(WrongExpiration, "a lifetime of %d s is shorter than %v", *asked, MinExpiration)
	}
	return nil
}

// Usages are the key usages of a registration, no more and no fewer.
func Usages() []certificatesv1.KeyUsage {
	return []certificatesv1.KeyUsage{
		certificatesv1.UsageDigitalSignature,
		certificatesv1.UsageKeyEncipherment,
		certificatesv1.UsageClientAuth,
	}
}

// vetSubject returns the agent that a subject names. Upstream agents are in
// two organizations, agents that follow the seed in one.
func vetSubject(subject pkix.Name, cluster string) (agent string, err error) {
	var commonNames, organizationNames int
	for _, attribute := range subject.Names {
		switch {
		case attribute.Type.Equal(oidCommonName()):
			commonNames++
		case attribute.Type.Equal(oidOrganization()):
			organizationNames++
		default:
			return "", refuse(ExtraSubject, "the subject has the attribute %s beside its name and organizations", attribute.Type)
		}
	}
	named, agent, ok := names.ParseAgentUser(subject.CommonName)
	if !ok || commonNames != 1 {
		return "", refuse(WrongCommonName, "the common name %s is not the user of one cluster's agent", quote(subject.CommonName))
	}
	if named != cluster {
		return "", refuse(ClusterMismatch, "the common name is of the cluster %s, the label of %q", quote(named), cluster)
	}
	organizations := slices.Sorted(slices.Values(subject.Organization))
	one := []string{names.ClusterGroup(cluster)}
	two := slices.Sorted(slices.Values([]string{names.ClusterGroup(cluster), names.GroupManagedClusters}))
	// A value that is no string is counted by its attribute only.
	readable := organizationNames == len(organizations)
	if !readable || !slices.Equal(organizations, one) && !slices.Equal(organizations, two) {
		return "", refuse(WrongOrganization, "the organizations are %s, not %q with or without %q",
			quote(organizations...), names.ClusterGroup(cluster), names.GroupManagedClusters)
	}
	return agent, nil
}

// vetExtras refuses everything that a signer could copy into the certificate
// beside the subject and the key.
func vetExtras(req *x509.CertificateRequest) error {
	if n := len(req.DNSNames) + len(req.IPAddresses) + len(req.EmailAddresses) + len(req.URIs); n > 0 {
		return refuse(ExtraNames, "the request has %d subject alternative names, an agent has none", n)
	}
	if len(req.Extensions) > 0 {
		return refuse(ExtraExtensions, "the request has the extension %s, an agent's has none", req.Extensions[0].Id)
	}
	return nil
}

func oidCommonName() asn1.ObjectIdentifier   { return asn1.ObjectIdentifier{2, 5, 4, 3} }
func oidOrganization() asn1.ObjectIdentifier { return asn1.ObjectIdentifier{2, 5, 4, 10} }

// quote makes what a stranger sent fit for a message: bounded and printable.
func quote(values ...string) string {
	const longest, most = 80, 4
	var out []byte
	for i, v := range values {
		if i > 0 {
			out = append(out, ", "...)
		}
		if i == most {
			return string(append(out, "..."...))
		}
		out = strconv.AppendQuoteToASCII(out, excerpt.Of(v, longest))
	}
	return string(out)
}
