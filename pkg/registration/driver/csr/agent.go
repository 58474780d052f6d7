package csr

import (
	"context"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// MaxOpenRequests is the number of CSRs of one cluster, without a certificate,
// at which the agent stops making more (contract B.4). Issued ones do not
// count: with certificates of ten minutes there can be more than ten of them
// before the hub's own clean-up, which runs hourly, comes by.
const MaxOpenRequests = 10

// Reasons that Agent.Obtain waits for.
const (
	// ReasonRequested waits for a person, or a policy, on the hub.
	ReasonRequested = "CSRRequested"
	// ReasonApproved waits for the hub's signer.
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

// AgentConfig is what an Agent asks for.
type AgentConfig struct {
	// Identity is who the certificate is for.
	Identity driver.Identity
	// ExpirationSeconds is the requested lifetime; 0 leaves it to the hub.
	ExpirationSeconds int32
	// Clock is the time that certificates and back-offs are judged by.
	Clock clock.PassiveClock
}

// Agent obtains client certificates by CertificateSigningRequests. It is
// stateless: what it must remember is in the pending data.
type Agent struct {
	config AgentConfig
}

var _ driver.Agent = (*Agent)(nil)

// NewAgent returns the driver for config.
func NewAgent(config AgentConfig) *Agent { return &Agent{config: config} }

// Decorate implements driver.Agent: the hub side of this driver needs nothing.
func (a *Agent) Decorate(*clusterv1.ManagedCluster) {}

// Inspect implements driver.Agent.
func (a *Agent) Inspect(stored driver.Data) (credential.Validity, error) {
	return inspect(a.config.Identity, stored[names.KeyTLSKey], stored[names.KeyTLSCert])
}

// Obtain implements driver.Agent. The first step makes a key and nothing else;
// the CSR's name follows from the key, so the steps behind it can be repeated
// by anyone who has the pending data.
func (a *Agent) Obtain(ctx context.Context, hub client.Client, pending driver.Data) (driver.Step, error) {
	req, err := parsePending(a.config.Identity, pending)
	if err != nil {
		// Nothing is pending, or nothing that could ever be issued to us.
		return a.begin(0)
	}
	var found certificatesv1.CertificateSigningRequest
	err = hub.Get(ctx, client.ObjectKey{Name: req.name}, &found)
	if apierrors.IsNotFound(err) {
		return a.create(ctx, hub, req)
	}
	if err != nil {
		return driver.Step{Pending: pending}, fmt.Errorf("get CertificateSigningRequest %s: %w", req.name, err)
	}
	return a.follow(req, &found)
}

// begin makes the key of a new request, to be stored before it is used.
func (a *Agent) begin(refusals int) (driver.Step, error) {
	req, err := newRequest(a.config.Identity, refusals)
	if err != nil {
		return driver.Step{}, err
	}
	return driver.Step{
		Pending: req.data(),
		Again:   true,
		Waiting: driver.Waiting{Reason: ReasonRequested, Message: "requesting a certificate for key " + req.fingerprint},
	}, nil
}

func (a *Agent) create(ctx context.Context, hub client.Client, req *request) (driver.Step, error) {
	step := driver.Step{Pending: req.data()}
	open, err := a.openRequests(ctx, hub)
	if err != nil {
		return step, err
	}
	if open >= MaxOpenRequests {
		step.Waiting = driver.Waiting{Reason: ReasonHalted, Message: fmt.Sprintf(
			"the hub holds %d CertificateSigningRequests of %s without a certificate, so no more are created: delete those that are not needed (kubectl get csr -l %s=%s)",
			open, a.config.Identity.Cluster, names.LabelClusterName, a.config.Identity.Cluster)}
		step.After, step.Failing = haltedRecheck, true
		return step, nil
	}
	csr, err := a.object(req)
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
	return a.follow(req, csr)
}

// openRequests counts the cluster's own CSRs that brought no certificate.
func (a *Agent) openRequests(ctx context.Context, hub client.Client) (int, error) {
	own, err := labels.NewRequirement(names.LabelClusterName, selection.Equals, []string{a.config.Identity.Cluster})
	if err != nil {
		return 0, fmt.Errorf("select CertificateSigningRequests: %w", err)
	}
	noAddOn, err := labels.NewRequirement(names.LabelAddOnName, selection.DoesNotExist, nil)
	if err != nil {
		return 0, fmt.Errorf("select CertificateSigningRequests: %w", err)
	}
	var list certificatesv1.CertificateSigningRequestList
	if err := hub.List(ctx, &list, client.MatchingLabelsSelector{Selector: labels.NewSelector().Add(*own, *noAddOn)}); err != nil {
		return 0, fmt.Errorf("list CertificateSigningRequests of %s: %w", a.config.Identity.Cluster, err)
	}
	open := 0
	for i := range list.Items {
		if len(list.Items[i].Status.Certificate) == 0 {
			open++
		}
	}
	return open, nil
}

func (a *Agent) object(req *request) (*certificatesv1.CertificateSigningRequest, error) {
	pem, err := req.encode(a.config.Identity)
	if err != nil {
		return nil, err
	}
	csr := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{
			Name:   req.name,
			Labels: map[string]string{names.LabelClusterName: a.config.Identity.Cluster},
		},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem,
			SignerName: certificatesv1.KubeAPIServerClientSignerName,
			Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageClientAuth},
		},
	}
	if a.config.ExpirationSeconds > 0 {
		csr.Spec.ExpirationSeconds = new(a.config.ExpirationSeconds)
	}
	return csr, nil
}

// follow says where the request stands.
func (a *Agent) follow(req *request, csr *certificatesv1.CertificateSigningRequest) (driver.Step, error) {
	if !req.owns(csr.Spec.Request) {
		// Somebody took the name. A new key has a new name.
		return a.begin(req.refusals)
	}
	step := driver.Step{Pending: req.data(), Watch: csr}
	denied, approved, failed := conditions(csr)
	switch {
	case denied != nil:
		return a.refused(req, denied, ReasonRefused, "was denied by the hub")
	case failed != nil:
		return a.refused(req, failed, ReasonFailed, "was approved but the hub's signer failed")
	case approved == nil:
		step.Waiting = driver.Waiting{Reason: ReasonRequested, Message: fmt.Sprintf(
			"waiting for a hub administrator to accept %s (key %s); run on the hub: kubectl ocm accept --clusters %s",
			a.config.Identity.Cluster, req.fingerprint, a.config.Identity.Cluster)}
		return step, nil
	case len(csr.Status.Certificate) == 0:
		step.Waiting = driver.Waiting{Reason: ReasonApproved, Message: fmt.Sprintf(
			"CertificateSigningRequest %s is approved and waits for the hub's signer %s; a hub without that signer, such as EKS, needs another registration driver",
			csr.Name, certificatesv1.KubeAPIServerClientSignerName)}
		return step, nil
	}
	issued, err := a.issued(req, csr.Status.Certificate)
	if err != nil {
		unfit := &certificatesv1.CertificateSigningRequestCondition{Message: err.Error(), LastUpdateTime: approved.LastUpdateTime}
		return a.refused(req, unfit, ReasonUnfit, "brought a certificate that cannot be used")
	}
	step.Issued = issued
	return step, nil
}

// refused waits, and then asks anew with a new key. The wait is counted from
// the refusal itself, which the hub recorded, so a restart does not shorten it.
func (a *Agent) refused(req *request, c *certificatesv1.CertificateSigningRequestCondition, reason, what string) (driver.Step, error) {
	again := c.LastUpdateTime.Add(backoff().Delay(req.refusals+1, req.name))
	wait := again.Sub(a.config.Clock.Now())
	if wait <= 0 {
		return a.begin(req.refusals + 1)
	}
	because := c.Message
	if because == "" {
		because = "no reason was given"
	}
	return driver.Step{
		Pending: req.data(),
		After:   wait,
		Failing: true,
		Waiting: driver.Waiting{Reason: reason, Message: fmt.Sprintf("CertificateSigningRequest %s %s: %s; asking again at %s",
			req.name, what, because, again.UTC().Format(time.RFC3339))},
	}, nil
}

func backoff() credential.Backoff {
	return credential.Backoff{First: 10 * time.Second, Most: time.Hour}
}

func conditions(csr *certificatesv1.CertificateSigningRequest) (denied, approved, failed *certificatesv1.CertificateSigningRequestCondition) {
	for i := range csr.Status.Conditions {
		c := &csr.Status.Conditions[i]
		if c.Status == corev1.ConditionFalse {
			continue
		}
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
