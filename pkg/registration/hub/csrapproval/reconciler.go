package csrapproval

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/mergepatch"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/csr"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/internal/record"
)

// Owner is the field manager of this controller.
const Owner client.FieldOwner = "ocm.csrapproval"

// retry is the delay after which a renewal that RBAC does not allow is evaluated
// again: the API server may not have seen the RBAC of acceptance yet.
const retry = 30 * time.Second

// Reconciler approves CSRs.
type Reconciler struct {
	// Client writes, and reads from the cache.
	Client client.Client
	// AutoApprove is the feature gate ManagedClusterAutoApproval.
	AutoApprove bool
	// Users are the users whose first requests are approved while the gate is on.
	Users []string
	// Events records events.
	Events events.EventRecorder
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return mergepatch.Settled(r.reconcile(ctx, req))
}

func (r *Reconciler) reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	object := &certificatesv1.CertificateSigningRequest{}
	if err := r.Client.Get(ctx, req.NamespacedName, object); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if decided(object) {
		return ctrl.Result{}, nil
	}
	request, err := csr.Vet(object)
	if err != nil {
		r.reportRejected(object, err)
		return ctrl.Result{}, nil
	}
	cluster, err := r.cluster(ctx, request.Identity.Cluster)
	if err != nil {
		return ctrl.Result{}, err
	}
	if request.Renewal() {
		return r.approveRenewal(ctx, object, request.Identity.Agent, cluster)
	}
	return ctrl.Result{}, r.approveFirst(ctx, object, request, cluster)
}

// reportRejected reports a CSR that is labelled as a registration and is invalid.
func (r *Reconciler) reportRejected(object *certificatesv1.CertificateSigningRequest, err error) {
	var rejection *csr.RejectionError
	if errors.As(err, &rejection) && rejection.Reason != csr.NotRegistration {
		r.warn(object, "RegistrationRefused", fmt.Sprintf("Not a valid registration of a cluster (%s): %s", rejection.Reason, rejection.Message))
	}
}

// approveRenewal approves the request of an agent for its own identity. The RBAC
// permission alone is not enough, because it may be stale or granted by another
// user: the agent must be the one that the hub accepted.
func (r *Reconciler) approveRenewal(ctx context.Context, object *certificatesv1.CertificateSigningRequest, agent string, cluster *clusterv1.ManagedCluster) (ctrl.Result, error) {
	if !accepted(cluster) {
		return ctrl.Result{}, nil // Evaluated again when the cluster is accepted.
	}
	recorded, err := record.Of(ctx, r.Client, cluster.Name)
	if err != nil {
		return ctrl.Result{}, err
	}
	if !recorded.Names(agent) {
		return ctrl.Result{RequeueAfter: retry}, nil
	}
	allowed, err := r.mayRenew(ctx, object, cluster.Name)
	if err != nil {
		return ctrl.Result{}, err
	}
	if !allowed {
		return ctrl.Result{RequeueAfter: retry}, nil
	}
	return ctrl.Result{}, r.approve(ctx, object)
}

// approveFirst approves the request of a listed user unless it conflicts with another
// request or with a running agent.
func (r *Reconciler) approveFirst(ctx context.Context, object *certificatesv1.CertificateSigningRequest, request csr.Request, cluster *clusterv1.ManagedCluster) error {
	if !r.AutoApprove || !slices.Contains(r.Users, request.Requester) {
		return nil
	}
	if cluster != nil && cluster.DeletionTimestamp != nil {
		return nil
	}
	if alive(cluster) {
		r.warn(object, "RegistrationRivalry", fmt.Sprintf(
			"Not approved automatically: the agent of cluster %s is running, and %s requests to register with the key fingerprint %s",
			cluster.Name, request.Requester, request.Fingerprint))
		return nil
	}
	conflicting, err := r.conflicting(ctx, object.Name, request)
	if err != nil {
		return err
	}
	if conflicting != "" {
		r.warn(object, "RegistrationRivalry", fmt.Sprintf(
			"Not approved automatically: request %s registers cluster %s with another requester or key than %s with the key fingerprint %s",
			conflicting, request.Identity.Cluster, request.Requester, request.Fingerprint))
		return nil
	}
	if err := r.approve(ctx, object); err != nil {
		return err
	}
	r.Events.Eventf(object, nil, corev1.EventTypeNormal, "ManagedClusterCSRAutoApproved", "Approve",
		"Approved automatically: requests of user %s are approved", request.Requester)
	return nil
}

// conflicting returns the name of a conflicting request for the same cluster: one
// with another key or requester that was approved, or that this controller could
// approve. Denied requests do not conflict, nor do those that only an administrator
// could approve, which any user who may create CSRs can create. Neither do renewals:
// an agent that lost its credential has left some, and an agent with a credential
// renews its lease.
func (r *Reconciler) conflicting(ctx context.Context, self string, request csr.Request) (string, error) {
	others, err := record.Cached(r.Client).Requests(ctx, request.Identity.Cluster)
	if err != nil {
		return "", err
	}
	for i := range others {
		other := &others[i]
		if other.Name == self || rejected(other) {
			continue
		}
		vetted, err := csr.Vet(other)
		if err != nil || !vetted.ConflictsWith(request) || vetted.Renewal() {
			continue
		}
		if approved(other) || slices.Contains(r.Users, vetted.Requester) {
			return other.Name, nil
		}
	}
	return "", nil
}

// cluster returns nil if there is no such cluster.
func (r *Reconciler) cluster(ctx context.Context, name string) (*clusterv1.ManagedCluster, error) {
	cluster := &clusterv1.ManagedCluster{}
	err := r.Client.Get(ctx, client.ObjectKey{Name: name}, cluster)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return cluster, err
}

// accepted reports whether the hub accepts the cluster, by its spec and its
// conditions.
func accepted(cluster *clusterv1.ManagedCluster) bool {
	return cluster != nil && cluster.DeletionTimestamp == nil && cluster.Spec.HubAcceptsClient &&
		apimeta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1.ManagedClusterConditionHubAccepted)
}

// alive reports whether the agent of a cluster renews its lease. The agent of a cluster
// whose API server is unhealthy does, and reports False; the hub sets Unknown when the
// lease has expired.
func alive(cluster *clusterv1.ManagedCluster) bool {
	if cluster == nil {
		return false
	}
	available := apimeta.FindStatusCondition(cluster.Status.Conditions, clusterv1.ManagedClusterConditionAvailable)
	return available != nil && available.Status != metav1.ConditionUnknown
}

// mayRenew reviews the access of the requester that the API server recorded.
// See docs/reference/wire-contract.md#csr-renewal-approval.
func (r *Reconciler) mayRenew(ctx context.Context, object *certificatesv1.CertificateSigningRequest, cluster string) (bool, error) {
	extra := make(map[string]authorizationv1.ExtraValue, len(object.Spec.Extra))
	for key, value := range object.Spec.Extra {
		extra[key] = authorizationv1.ExtraValue(value)
	}
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: object.Spec.Username, UID: object.Spec.UID, Groups: object.Spec.Groups, Extra: extra,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Group: names.RegisterGroup, Resource: "managedclusters", Subresource: "clientcertificates",
			Verb: "renew", Name: cluster,
		},
	}}
	if err := r.Client.Create(ctx, review); err != nil {
		return false, fmt.Errorf("access review of %s: %w", object.Name, err)
	}
	return review.Status.Allowed && !review.Status.Denied, nil
}

func (r *Reconciler) approve(ctx context.Context, object *certificatesv1.CertificateSigningRequest) error {
	// The API server sets the time, as for manual approvals: the agent is the one
	// that was approved last.
	object.Status.Conditions = append(object.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type:    certificatesv1.CertificateApproved,
		Status:  corev1.ConditionTrue,
		Reason:  names.ReasonAutoApproved,
		Message: names.MessageAutoApproved,
	})
	if err := r.Client.SubResource("approval").Update(ctx, object, Owner); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("approval of %s: %w", object.Name, err)
	}
	return nil
}

func (r *Reconciler) warn(object *certificatesv1.CertificateSigningRequest, reason, note string) {
	r.Events.Eventf(object, nil, corev1.EventTypeWarning, reason, "Approve", "%s", note)
}

// decided reports whether the request was approved, denied, failed or signed.
func decided(object *certificatesv1.CertificateSigningRequest) bool {
	return len(object.Status.Certificate) > 0 || len(object.Status.Conditions) > 0
}

func rejected(object *certificatesv1.CertificateSigningRequest) bool {
	return hasCondition(object, certificatesv1.CertificateDenied) || hasCondition(object, certificatesv1.CertificateFailed)
}

func approved(object *certificatesv1.CertificateSigningRequest) bool {
	return hasCondition(object, certificatesv1.CertificateApproved)
}

func hasCondition(object *certificatesv1.CertificateSigningRequest, kind certificatesv1.RequestConditionType) bool {
	return slices.ContainsFunc(object.Status.Conditions, func(c certificatesv1.CertificateSigningRequestCondition) bool {
		return c.Type == kind
	})
}
