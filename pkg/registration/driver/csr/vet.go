package csr

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
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

const (
	minRSABits   = 2048
	minCurveBits = 256
)

// Request is a vetted CSR: the requested identity and the requester.
type Request struct {
	// Identity is whom the certificate would be for.
	Identity driver.Identity
	// Requester is the user that was authenticated when the request was made, not
	// anything that the request itself claims.
	Requester string
	// Fingerprint identifies the public key, for users to compare.
	Fingerprint string
}

// Renewal reports whether the requester is the requested identity, which requires a
// credential of that identity.
func (r Request) Renewal() bool {
	return r.Requester == names.AgentUser(r.Identity.Cluster, r.Identity.Agent)
}

// ConflictsWith reports whether two requests are for one cluster, but not by the same
// requester with the same key.
func (r Request) ConflictsWith(other Request) bool {
	return r.Identity.Cluster == other.Identity.Cluster &&
		(r.Requester != other.Requester || r.Fingerprint != other.Fingerprint)
}

// Reason says in one CamelCase word why a request is refused.
type Reason string

// The reasons of a RejectionError.
const (
	// NotRegistration is the reason for requests of other components: without a
	// cluster's label, of an add-on, for another signer.
	NotRegistration   Reason = "NotRegistration"
	MalformedRequest  Reason = "MalformedRequest"
	WeakKey           Reason = "WeakKey"
	UnsupportedKey    Reason = "UnsupportedKey"
	WrongCommonName   Reason = "WrongCommonName"
	WrongOrganization Reason = "WrongOrganization"
	ClusterMismatch   Reason = "ClusterMismatch"
	ExtraSubject      Reason = "ExtraSubject"
	ExtraNames        Reason = "ExtraNames"
	ExtraExtensions   Reason = "ExtraExtensions"
	WrongUsages       Reason = "WrongUsages"
	WrongExpiration   Reason = "WrongExpiration"
)

// RejectionError is the error of Vet.
type RejectionError struct {
	Reason Reason
	// Message is a sentence about what is wrong.
	Message string
}

// Error implements error.
func (r *RejectionError) Error() string { return r.Message }

func refuse(reason Reason, format string, args ...any) error {
	return &RejectionError{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Vet checks a CSR and returns what it requests. It reads only the CSR: the caller
// decides whether the requester may have the identity. Every error is a
// *RejectionError of the first check that fails.
// See docs/reference/wire-contract.md#csr-recognition.
func Vet(csr *certificatesv1.CertificateSigningRequest) (Request, error) {
	v := vetting{object: csr, cluster: csr.Labels[names.LabelClusterName], found: Request{Requester: csr.Spec.Username}}
	for _, check := range checks() {
		if err := check(&v); err != nil {
			return Request{}, err
		}
	}
	return v.found, nil
}

// vetting is one request while it is checked.
type vetting struct {
	object  *certificatesv1.CertificateSigningRequest
	cluster string
	// parsed is nil before the check of the encoding.
	parsed *x509.CertificateRequest
	found  Request
}

// checks lists what a request must pass, in the order in which failures are
// reported: first whether the request is a registration at all, then what can be
// read without decoding it, then its content.
func checks() []func(*vetting) error {
	return []func(*vetting) error{
		(*vetting).labels,
		(*vetting).signer,
		(*vetting).clusterName,
		(*vetting).usages,
		(*vetting).expiration,
		(*vetting).encoding,
		(*vetting).key,
		(*vetting).subject,
		(*vetting).alternativeNames,
		(*vetting).extensions,
	}
}

func (v *vetting) labels() error {
	if v.cluster == "" {
		return refuse(NotRegistration, "the request has no label %s", names.LabelClusterName)
	}
	if addOn, ok := v.object.Labels[names.LabelAddOnName]; ok {
		return refuse(NotRegistration, "the request belongs to the add-on %q", addOn)
	}
	return nil
}

func (v *vetting) signer() error {
	if v.object.Spec.SignerName != certificatesv1.KubeAPIServerClientSignerName {
		return refuse(NotRegistration, "the request is for the signer %q", v.object.Spec.SignerName)
	}
	return nil
}

func (v *vetting) clusterName() error {
	if err := names.ValidateClusterName(v.cluster); err != nil {
		return refuse(ClusterMismatch, "the label %s: %v", names.LabelClusterName, err)
	}
	return nil
}

func (v *vetting) usages() error {
	usages := slices.Sorted(slices.Values(v.object.Spec.Usages))
	if !slices.Equal(usages, slices.Sorted(slices.Values(Usages()))) {
		return refuse(WrongUsages, "the usages are %q, not exactly %q", v.object.Spec.Usages, Usages())
	}
	return nil
}

func (v *vetting) expiration() error {
	if asked := v.object.Spec.ExpirationSeconds; asked != nil && *asked < int32(MinExpiration/time.Second) {
		return refuse(WrongExpiration, "a lifetime of %d s is shorter than %v", *asked, MinExpiration)
	}
	return nil
}

func (v *vetting) encoding() error {
	parsed, err := pemutil.ParseRequest(v.object.Spec.Request)
	if err != nil {
		return refuse(MalformedRequest, "the CSR cannot be parsed: %v", err)
	}
	v.parsed = parsed
	return nil
}

func (v *vetting) key() error {
	if err := VetKey(v.parsed.PublicKey); err != nil {
		return err
	}
	fingerprint, err := pemutil.KeyFingerprint(v.parsed.PublicKey)
	if err != nil {
		return refuse(MalformedRequest, "the public key cannot be parsed: %v", err)
	}
	v.found.Fingerprint = fingerprint
	return nil
}

func (v *vetting) subject() (err error) {
	v.found.Identity, err = agentSubject(v.parsed.Subject, v.cluster)
	return err
}

// alternativeNames and extensions refuse everything that a signer could copy
// into the certificate in addition to the subject and the key.
func (v *vetting) alternativeNames() error {
	p := v.parsed
	if n := len(p.DNSNames) + len(p.IPAddresses) + len(p.EmailAddresses) + len(p.URIs); n > 0 {
		return refuse(ExtraNames, "the request has %d subject alternative names; an agent's must have none", n)
	}
	return nil
}

func (v *vetting) extensions() error {
	if len(v.parsed.Extensions) > 0 {
		return refuse(ExtraExtensions, "the request has the extension %s; an agent's must have none", v.parsed.Extensions[0].Id)
	}
	return nil
}

// VetKey refuses keys that are too weak and kinds of keys that it does not know, with a
// *RejectionError. No curve is smaller than the ones that TLS 1.3 can authenticate a
// client with (RFC 8446, 4.2.3).
func VetKey(key crypto.PublicKey) error {
	switch key := key.(type) {
	case *rsa.PublicKey:
		if bits := key.N.BitLen(); bits < minRSABits {
			return refuse(WeakKey, "the RSA key has %d bits, fewer than %d", bits, minRSABits)
		}
	case *ecdsa.PublicKey:
		if curve := key.Params(); curve.BitSize < minCurveBits {
			return refuse(WeakKey, "the key is on the curve %s, which is smaller than P-%d", curve.Name, minCurveBits)
		}
	case ed25519.PublicKey:
	default:
		return refuse(UnsupportedKey, "the key is no RSA, ECDSA or Ed25519 key")
	}
	return nil
}

// Usages are the key usages of a registration, no more and no fewer.
// See docs/reference/wire-contract.md#csr-usages.
func Usages() []certificatesv1.KeyUsage {
	return []certificatesv1.KeyUsage{
		certificatesv1.UsageDigitalSignature,
		certificatesv1.UsageKeyEncipherment,
		certificatesv1.UsageClientAuth,
	}
}

// agentSubject returns the agent that a subject names. Agents of OCM are in two
// organizations: their cluster's group and that of all clusters. The second may
// be absent.
// See docs/reference/wire-contract.md#csr-subject.
func agentSubject(subject pkix.Name, cluster string) (driver.Identity, error) {
	var commonNames, organizationNames int
	for _, attribute := range subject.Names {
		switch {
		case attribute.Type.Equal(oidCommonName()):
			commonNames++
		case attribute.Type.Equal(oidOrganization()):
			organizationNames++
		default:
			return driver.Identity{}, refuse(ExtraSubject, "the subject has the attribute %s in addition to its name and organizations", attribute.Type)
		}
	}
	named, agent, ok := names.ParseAgentUser(subject.CommonName)
	if !ok || commonNames != 1 {
		return driver.Identity{}, refuse(WrongCommonName, "the common name %s is not the user of one cluster's agent", quote(subject.CommonName))
	}
	if named != cluster {
		return driver.Identity{}, refuse(ClusterMismatch, "the common name is of the cluster %s, the label of %q", quote(named), cluster)
	}
	organizations := slices.Sorted(slices.Values(subject.Organization))
	one := []string{names.ClusterGroup(cluster)}
	two := slices.Sorted(slices.Values([]string{names.ClusterGroup(cluster), names.GroupManagedClusters}))
	// A value that is no string is counted by its attribute only.
	readable := organizationNames == len(organizations)
	if !readable || !slices.Equal(organizations, one) && !slices.Equal(organizations, two) {
		return driver.Identity{}, refuse(WrongOrganization, "the organizations are %s, not %q with or without %q",
			quote(organizations...), names.ClusterGroup(cluster), names.GroupManagedClusters)
	}
	return driver.Identity{Cluster: cluster, Agent: agent}, nil
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
