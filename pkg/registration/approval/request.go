package approval

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/csr"
)

// State is the progress of a request.
type State string

// The states of a request.
const (
	Pending  State = "Pending"
	Approved State = "Approved" // but no certificate yet
	Issued   State = "Issued"
	Denied   State = "Denied"
	Failed   State = "Failed"
)

// Request is the CertificateSigningRequest of a cluster that registers with a
// client certificate. Its JSON form is part of the output of commands.
type Request struct {
	Name    string    `json:"name"`
	Cluster string    `json:"cluster"`
	State   State     `json:"state"`
	Created time.Time `json:"created"`
	// Requester is the user who created the request, as the API server
	// authenticated it.
	Requester string `json:"requester"`
	// Fingerprint names the key; empty when the request cannot be read.
	Fingerprint string `json:"fingerprint,omitempty"`
	// Agent distinguishes two agents of one cluster.
	Agent string `json:"agent,omitempty"`
	// Bootstrap is set if the requester is a bootstrap identity of the hub.
	Bootstrap bool `json:"bootstrap"`
	// Renewal is set if the identity itself requests its next certificate.
	Renewal bool `json:"renewal,omitempty"`
	// Rejection is why the request can never be approved; empty if it can.
	Rejection string `json:"refusal,omitempty"`

	// Object is the request itself.
	Object *certificatesv1.CertificateSigningRequest `json:"-"`
}

// Describe returns what an administrator compares before deciding.
func (r Request) Describe(now time.Time) string {
	key := r.Fingerprint
	if key == "" {
		key = "unreadable"
	}
	return fmt.Sprintf("key %s, requester %s, age %s", key, r.Requester, duration.ShortHumanDuration(now.Sub(r.Created)))
}

// Requests returns the requests for a cluster, or for all clusters if the name
// is empty, the oldest first.
func Requests(ctx context.Context, c client.Reader, cluster string) ([]Request, error) {
	selector := client.ListOption(client.HasLabels{names.LabelClusterName})
	if cluster != "" {
		selector = client.MatchingLabels{names.LabelClusterName: cluster}
	}
	var list certificatesv1.CertificateSigningRequestList
	if err := c.List(ctx, &list, selector); err != nil {
		return nil, fmt.Errorf("requests of clusters: %w", err)
	}
	var requests []Request
	for i := range list.Items {
		if r, ok := read(&list.Items[i]); ok {
			requests = append(requests, r)
		}
	}
	slices.SortFunc(requests, func(a, b Request) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name))
	})
	return requests, nil
}

// read returns a request, and false for one that registers no cluster.
func read(obj *certificatesv1.CertificateSigningRequest) (Request, bool) {
	r := Request{
		Name: obj.Name, Cluster: obj.Labels[names.LabelClusterName], State: StateOf(obj),
		Created: obj.CreationTimestamp.Time, Requester: obj.Spec.Username,
		Bootstrap: fromBootstrap(obj), Object: obj,
	}
	vetted, err := csr.Vet(obj)
	var refusal *csr.RejectionError
	switch {
	case errors.As(err, &refusal) && refusal.Reason == csr.NotRegistration:
		return Request{}, false
	case err != nil:
		r.Rejection = err.Error()
		return r, true
	}
	r.Fingerprint, r.Agent, r.Renewal = vetted.Fingerprint, vetted.Identity.Agent, vetted.Renewal()
	return r, true
}

// StateOf returns the progress of a request.
func StateOf(obj *certificatesv1.CertificateSigningRequest) State {
	state := Pending
	for _, c := range obj.Status.Conditions {
		switch c.Type {
		case certificatesv1.CertificateDenied:
			return Denied
		case certificatesv1.CertificateFailed:
			return Failed
		case certificatesv1.CertificateApproved:
			state = Approved
		}
	}
	if state == Approved && len(obj.Status.Certificate) > 0 {
		return Issued
	}
	return state
}

// fromBootstrap reports whether the requester is a bootstrap identity. Both the
// name and the group must say so: some authenticators let users choose their names.
func fromBootstrap(obj *certificatesv1.CertificateSigningRequest) bool {
	user, groups := obj.Spec.Username, obj.Spec.Groups
	switch {
	case user == names.BootstrapServiceAccountUser:
		return slices.Contains(groups, "system:serviceaccounts:"+names.OperatorNamespace)
	case user == names.ServiceAccountUser(names.HubNamespace, names.HubGRPCServerServiceAccount):
		return slices.Contains(groups, "system:serviceaccounts:"+names.HubNamespace)
	case strings.HasPrefix(user, "system:bootstrap:"):
		return slices.Contains(groups, names.BootstrapTokenGroup)
	}
	return false
}
