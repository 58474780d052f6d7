package csr

import (
	"cmp"
	"crypto"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pemutil"
)

// wanted is the requested certificate and how to request it.
type wanted struct {
	// owner describes the certificate's owner in messages.
	owner string
	// user, groups and units are its subject; groups and units are sorted.
	user   string
	groups []string
	units  []string
	// dnsNames are its subject alternative names.
	dnsNames []string
	// distinction is a further part of the name of a request.
	distinction []string
	// prefix begins the name of the CSR, without the dash that follows.
	prefix string
	// labels are the labels of the CSR. The agent's CSRs with these labels and without
	// those named in lacks count against MaxOpenRequests.
	labels map[string]string
	lacks  string
	signer string
	// expirationSeconds is the lifetime to ask for, 0 leaves it to the signer.
	expirationSeconds int32
	// words are said while waiting.
	words words
}

// words are the messages about a CSR, given its name and its key's fingerprint.
type words struct {
	// approve says who has to approve it.
	approve func(name, fingerprint string) string
	// sign says who has to sign it.
	sign func(name string) string
}

// subject is the subject of the certificate.
func (w *wanted) subject() pkix.Name {
	return pkix.Name{CommonName: w.user, Organization: w.groups, OrganizationalUnit: w.units}
}

// asksFor reports whether a CSR's request is for the user that is wanted.
func (w *wanted) asksFor(pem []byte) bool {
	request, err := pemutil.ParseRequest(pem)
	return err == nil && request.Subject.CommonName == w.user
}

// requestName is the name of the CSR for what is wanted and a key: a prefix and
// a digest of both, so that asking twice is asking once.
// See docs/reference/wire-contract.md#csr-name.
func (w *wanted) requestName(pub crypto.PublicKey) (string, error) {
	der, err := x509.MarshalPKIXPublicKey(pub)
	if err != nil {
		return "", fmt.Errorf("encode public key: %w", err)
	}
	h := sha256.New()
	for _, part := range slices.Concat([]string{w.user}, w.groups, w.distinction) {
		_, _ = h.Write([]byte(part)) // A hash never fails to write.
		_, _ = h.Write([]byte{0})
	}
	_, _ = h.Write(der)
	digest := hex.EncodeToString(h.Sum(nil)[:20])
	prefix := w.prefix[:min(len(w.prefix), validation.DNS1123SubdomainMaxLength-len(digest)-1)]
	return strings.TrimRight(prefix, "-.") + "-" + digest, nil
}

// selector selects the CSRs of the same owner.
func (w *wanted) selector() (labels.Selector, error) {
	selector := labels.SelectorFromSet(w.labels)
	if w.lacks == "" {
		return selector, nil
	}
	lacks, err := labels.NewRequirement(w.lacks, selection.DoesNotExist, nil)
	if err != nil {
		return nil, fmt.Errorf("select CertificateSigningRequests: %w", err)
	}
	return selector.Add(*lacks), nil
}

// sorted returns the values in order and each once, nil for none.
func sorted[T cmp.Ordered](values []T) []T {
	return slices.Compact(slices.Sorted(slices.Values(values)))
}

// labelSelector selects the CSRs of the same owner, for use in messages.
func (w *wanted) labelSelector() string {
	return labels.FormatLabels(w.labels)
}
