package csr

import (
	"context"
	"fmt"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// MaxOpenRequests is the number of an agent's own CSRs without a certificate, for its
// cluster or for one of its add-ons, at which the agent stops creating more. CSRs of
// other requesters do not count, regardless of their labels. Issued CSRs do not count
// either: with a lifetime of ten minutes there can be more than ten before Kubernetes
// deletes them, hourly.
// See docs/reference/wire-contract.md#csr-limit.
const MaxOpenRequests = 10

// Reasons that Obtain waits for.
const (
	// ReasonRequested waits for a person, or a policy, on the hub.
	ReasonRequested = "CSRRequested"
	// ReasonApproved waits for the signer.
	ReasonApproved = "CSRApproved"
	// ReasonRefused waits to ask again after a denial.
	ReasonRefused = "CSRDenied"
	// ReasonFailed waits to ask again after the signer failed.
	ReasonFailed = "CSRFailed"
	// ReasonUnfit waits to ask again after a certificate was issued that
	// cannot be used.
	ReasonUnfit = "CertificateUnfit"
	// ReasonHalted waits for the hub to have fewer open CSRs.
	ReasonHalted = "ClientCertificateCreationHalted"
)

// haltedRecheck is how often a halted agent looks whether there is room again.
const haltedRecheck = time.Minute

// requester requests a certificate with CertificateSigningRequests. It is stateless:
// its state is in the pending data.
type requester struct {
	wanted wanted
	clock  clock.PassiveClock
}

// Inspect implements driver.Credential. Who issued the certificate is no concern
// of the agent: a custom signer's CA is known to the servers that the certificate is
// shown to.
func (r *requester) Inspect(stored driver.Data) (credential.Validity, error) {
	return r.wanted.inspect(stored[names.KeyTLSKey], stored[names.KeyTLSCert])
}

// User implements driver.Credential.
func (r *requester) User() clientcmdapi.AuthInfo {
	return clientcmdapi.AuthInfo{ClientCertificate: names.KeyTLSCert, ClientKey: names.KeyTLSKey}
}

// Renewal implements driver.Credential.
func (r *requester) Renewal() credential.RenewalPolicy { return credential.Certificates() }

// Report implements driver.Credential.
func (r *requester) Report() driver.Report {
	return driver.Report{
		Conditions: []string{names.ConditionCertificateRotated},
		Valid: func(v credential.Validity) driver.Waiting {
			return driver.Waiting{Reason: names.ReasonCertificateUpdated, Message: fmt.Sprintf(
				names.MessageCertificateRotated, credential.Timestamp(v.NotBefore), credential.Timestamp(v.NotAfter))}
		},
		Failed: func(w driver.Waiting) driver.Waiting {
			message := fmt.Sprintf(names.MessageCertificateFailed, w.Message)
			if w.Reason == ReasonHalted {
				message = names.MessageCertificateHalted
			}
			return driver.Waiting{Reason: names.ReasonCertificateFailed, Message: message}
		},
	}
}

// Obtain implements driver.Credential. The first step makes a key and nothing
// else; the CSR's name follows from the key, so the steps behind it can be
// repeated by anyone who has the pending data.
func (r *requester) Obtain(ctx context.Context, hub client.Client, pending driver.Data) (driver.Step, error) {
	req, err := parsePending(&r.wanted, pending)
	if err != nil {
		// Nothing is pending, or nothing that could ever be issued to us.
		return r.begin(0)
	}
	var found certificatesv1.CertificateSigningRequest
	err = hub.Get(ctx, client.ObjectKey{Name: req.name}, &found)
	if apierrors.IsNotFound(err) {
		return r.create(ctx, hub, req)
	}
	if err != nil {
		return driver.Step{Pending: pending}, fmt.Errorf("get CertificateSigningRequest %s: %w", req.name, err)
	}
	return r.follow(req, &found)
}

// begin makes the key of a new request, to be stored before it is used.
func (r *requester) begin(denials int) (driver.Step, error) {
	req, err := newRequest(&r.wanted, denials)
	if err != nil {
		return driver.Step{}, err
	}
	return driver.Step{
		Pending: req.data(),
		Again:   true,
		Waiting: driver.Waiting{Reason: ReasonRequested, Message: "requesting a certificate for key " + req.fingerprint},
	}, nil
}

func (r *requester) create(ctx context.Context, hub client.Client, req *request) (driver.Step, error) {
	step := driver.Step{Pending: req.data()}
	open, err := r.openRequests(ctx, hub)
	if err != nil {
		return step, err
	}
	if open >= MaxOpenRequests {
		step.Waiting = driver.Waiting{Reason: ReasonHalted, Message: fmt.Sprintf(
			"the hub has %d CertificateSigningRequests of %s without a certificate, so the agent creates no more; delete those that are not needed (kubectl get csr -l %s)",
			open, r.wanted.owner, r.wanted.labelSelector())}
		step.After, step.Failing = haltedRecheck, true
		return step, nil
	}
	csr, err := r.object(req)
	if err != nil {
		return step, err
	}
	err = hub.Create(ctx, csr)
	if apierrors.IsAlreadyExists(err) {
		step.Again = true // Another step finds out what it is.
		return step, nil
	}
	if err != nil {
		return step, fmt.Errorf("create CertificateSigningRequest %s: %w", req.name, err)
	}
	return r.follow(req, csr)
}

// openRequests counts the agent's own CSRs without a certificate. Every user who may
// create CSRs can set the labels and the subject of this agent, so if there are many,
// those of other requesters are not counted.
func (r *requester) openRequests(ctx context.Context, hub client.Client) (int, error) {
	selector, err := r.wanted.selector()
	if err != nil {
		return 0, err
	}
	var list certificatesv1.CertificateSigningRequestList
	if err := hub.List(ctx, &list, client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return 0, fmt.Errorf("list CertificateSigningRequests of %s: %w", r.wanted.owner, err)
	}
	open := slices.DeleteFunc(list.Items, func(c certificatesv1.CertificateSigningRequest) bool {
		return len(c.Status.Certificate) > 0 || !r.wanted.asksFor(c.Spec.Request)
	})
	if len(open) < MaxOpenRequests {
		return len(open), nil
	}
	self := &authenticationv1.SelfSubjectReview{}
	if err := hub.Create(ctx, self); apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return len(open), nil // Hubs before Kubernetes 1.28 do not say who asks.
	} else if err != nil {
		return 0, fmt.Errorf("get the user name from the hub for requests of %s: %w", r.wanted.owner, err)
	}
	open = slices.DeleteFunc(open, func(c certificatesv1.CertificateSigningRequest) bool {
		return c.Spec.Username != self.Status.UserInfo.Username
	})
	return len(open), nil
}

func (r *requester) object(req *request) (*certificatesv1.CertificateSigningRequest, error) {
	pem, err := req.encode(&r.wanted)
	if err != nil {
		return nil, err
	}
	csr := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: req.name, Labels: r.wanted.labels},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem,
			SignerName: r.wanted.signer,
			Usages:     Usages(),
		},
	}
	if r.wanted.expirationSeconds > 0 {
		csr.Spec.ExpirationSeconds = new(r.wanted.expirationSeconds)
	}
	return csr, nil
}

// follow says where the request stands.
func (r *requester) follow(req *request, csr *certificatesv1.CertificateSigningRequest) (driver.Step, error) {
	if !req.owns(csr.Spec.Request) {
		// Another request has the name. A new key has a new name.
		return r.begin(req.denials)
	}
	step := driver.Step{Pending: req.data(), Watch: csr, Event: names.EventCSRCreated}
	denied, approved, failed := conditions(csr)
	switch {
	case denied != nil:
		return r.refused(req, denied, ReasonRefused, "was denied by the hub")
	case failed != nil:
		return r.refused(req, failed, ReasonFailed, "was approved, but the hub's signer failed")
	case approved == nil:
		step.Waiting = driver.Waiting{Reason: ReasonRequested, Message: r.wanted.words.approve(csr.Name, req.fingerprint)}
		return step, nil
	case len(csr.Status.Certificate) == 0:
		step.Waiting = driver.Waiting{Reason: ReasonApproved, Message: r.wanted.words.sign(csr.Name)}
		return step, nil
	}
	issued, err := r.issued(req, csr.Status.Certificate)
	if err != nil {
		unfit := &certificatesv1.CertificateSigningRequestCondition{Message: err.Error(), LastUpdateTime: approved.LastUpdateTime}
		return r.refused(req, unfit, ReasonUnfit, "has an invalid certificate")
	}
	step.Issued = issued
	return step, nil
}

// refused waits, and then creates a request with a new key. The wait begins at the
// denial that the hub recorded, so a restart does not shorten it.
func (r *requester) refused(req *request, c *certificatesv1.CertificateSigningRequestCondition, reason, what string) (driver.Step, error) {
	again := c.LastUpdateTime.Add(backoff().Delay(req.denials+1, req.name))
	wait := again.Sub(r.clock.Now())
	if wait <= 0 {
		return r.begin(req.denials + 1)
	}
	because := c.Message
	if because == "" {
		because = "no reason was given"
	}
	return driver.Step{
		Pending: req.data(),
		After:   wait,
		Failing: true,
		Waiting: driver.Waiting{Reason: reason, Message: fmt.Sprintf("CertificateSigningRequest %s %s: %s; retrying at %s",
			req.name, what, because, credential.Timestamp(again))},
	}, nil
}

func backoff() credential.Backoff {
	return credential.Backoff{First: 10 * time.Second, Most: time.Hour}
}

func conditions(csr *certificatesv1.CertificateSigningRequest) (denied, approved, failed *certificatesv1.CertificateSigningRequestCondition) {
	for i := range csr.Status.Conditions {
		c := &csr.Status.Conditions[i] // The API server takes these types with status True only.
		switch c.Type {
		case certificatesv1.CertificateDenied:
			denied = c
		case certificatesv1.CertificateApproved:
			approved = c
		case certificatesv1.CertificateFailed:
			failed = c
		}
	}
	return denied, approved, failed
}
