package certificate

import (
	"context"
	"crypto/x509"
	"fmt"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/internal/addonconfig"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/template/source"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/labelindex"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/mergepatch"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/watch"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// Owner is the field manager of everything this package writes.
const Owner client.FieldOwner = "ocm.addoncertificate"

// Reconciler approves and signs certificate requests.
type Reconciler struct {
	// Client writes, and reads from the cache.
	Client client.Client
	// Live reads the Secrets of signers.
	Live client.Reader
	// Configs reads AddOnTemplates.
	Configs client.Reader
	// Clock dates certificates.
	Clock clock.PassiveClock
	// Namespace is the add-on manager's, where signers are that name none.
	Namespace string
	// Events records why a request is not approved or not signed.
	Events events.EventRecorder
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return mergepatch.Settled(ctrl.Result{}, r.reconcile(ctx, req))
}

func (r *Reconciler) reconcile(ctx context.Context, req ctrl.Request) error {
	object := &certificatesv1.CertificateSigningRequest{}
	if err := r.Client.Get(ctx, req.NamespacedName, object); err != nil {
		return client.IgnoreNotFound(err)
	}
	if !open(object) {
		return nil
	}
	addOn, template, err := r.template(ctx, object)
	if err != nil || template == nil {
		return err
	}
	registration := registrationFor(template, object.Spec.SignerName)
	if registration == nil {
		return nil
	}
	request, err := vet(object, addOn, registration)
	if err != nil {
		r.warn(object, "AddOnCertificateRefused", "Not approved automatically: "+err.Error())
		return nil //nolint:nilerr // The request stays as it is.
	}
	custom := registration.Type == addonv1alpha1.RegistrationTypeCustomSigner
	if custom {
		if err := r.authorize(ctx, addOn, template, registration.CustomSigner); err != nil {
			return r.retry(object, "AddOnCertificateNotGranted", "Not granted", err)
		}
	}
	switch {
	case !conditionOf(object, certificatesv1.CertificateApproved):
		return r.approve(ctx, object)
	case custom:
		return r.sign(ctx, object, request, registration.CustomSigner)
	}
	return nil
}

// sign signs a request that is approved.
func (r *Reconciler) sign(ctx context.Context, object *certificatesv1.CertificateSigningRequest, request *x509.CertificateRequest,
	signer *addonv1alpha1.CustomSignerRegistrationConfig,
) error {
	authority, err := r.authority(ctx, r.secretOf(signer))
	if err == nil {
		object.Status.Certificate, err = sign(authority, request, object.Spec.ExpirationSeconds, r.Clock.Now())
	}
	if err == nil {
		err = r.Client.Status().Update(ctx, object, Owner)
	}
	return r.retry(object, "AddOnCertificateNotSigned", "Not signed", err)
}

// open reports whether something is left to do about a request of an add-on.
func open(object *certificatesv1.CertificateSigningRequest) bool {
	if !strings.HasPrefix(object.Name, "addon") || len(object.Status.Certificate) > 0 ||
		conditionOf(object, certificatesv1.CertificateDenied) || conditionOf(object, certificatesv1.CertificateFailed) {
		return false
	}
	return object.Spec.SignerName != certificatesv1.KubeAPIServerClientSignerName || !conditionOf(object, certificatesv1.CertificateApproved)
}

// template returns the add-on that a request is for, and its template; none if that is not
// this package's business.
func (r *Reconciler) template(ctx context.Context, object *certificatesv1.CertificateSigningRequest) (*addonv1beta1.ManagedClusterAddOn, *addonv1alpha1.AddOnTemplateSpec, error) {
	addOn, cma, cluster := &addonv1beta1.ManagedClusterAddOn{}, &addonv1beta1.ClusterManagementAddOn{}, &clusterv1.ManagedCluster{}
	name, clusterName := object.Labels[names.LabelAddOnName], object.Labels[names.LabelClusterName]
	for key, into := range map[client.ObjectKey]client.Object{
		{Name: name}:                         cma,
		{Namespace: clusterName, Name: name}: addOn,
	} {
		if err := r.Client.Get(ctx, key, into); err != nil {
			return nil, nil, client.IgnoreNotFound(err)
		}
	}
	if err := r.Client.Get(ctx, client.ObjectKey{Name: clusterName}, cluster); err != nil {
		return nil, nil, client.IgnoreNotFound(err)
	}
	if !addonconfig.Managed(cma) || !addonconfig.Templated(cma) || !cluster.Spec.HubAcceptsClient {
		return nil, nil, nil
	}
	template, err := source.Template(ctx, r.Configs, addOn)
	return addOn, template, err
}

// approve approves a request.
// See docs/reference/wire-contract.md#addon-csr.
func (r *Reconciler) approve(ctx context.Context, object *certificatesv1.CertificateSigningRequest) error {
	object.Status.Conditions = append(object.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue,
		Reason: names.ReasonAutoApproved, Message: names.MessageAddOnAutoApproved,
	})
	return r.retry(object, "AddOnCertificateNotApproved", "Not approved", r.Client.SubResource("approval").Update(ctx, object, Owner))
}

// retry records why a step failed, and returns an error so that it is tried again; nil if it
// did not fail, or the request is gone.
func (r *Reconciler) retry(object *certificatesv1.CertificateSigningRequest, reason, what string, err error) error {
	if client.IgnoreNotFound(err) == nil {
		return nil
	}
	r.warn(object, reason, what+": "+err.Error())
	return fmt.Errorf("certificate request %s: %w", object.Name, err)
}

func (r *Reconciler) warn(object *certificatesv1.CertificateSigningRequest, reason, note string) {
	const most = 1000 // What the API server takes.
	r.Events.Eventf(object, nil, corev1.EventTypeWarning, reason, "Approve", "%s", note[:min(most, len(note))])
}

// SetupWithManager starts the controller with mgr. ctx is the manager's context.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	if err := labelindex.Add(ctx, mgr.GetFieldIndexer(), &certificatesv1.CertificateSigningRequest{}, names.LabelClusterName); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("addon.certificate").
		For(&certificatesv1.CertificateSigningRequest{}).
		// A request can be there before what it is vetted by.
		Watches(&addonv1beta1.ManagedClusterAddOn{}, handler.EnqueueRequestsFromMapFunc(r.requests), builder.WithPredicates(watch.News(), predicate.Funcs{
			UpdateFunc: watch.Updates(func(before, after *addonv1beta1.ManagedClusterAddOn) bool {
				return !equality.Semantic.DeepEqual(before.Status.ConfigReferences, after.Status.ConfigReferences)
			}),
			DeleteFunc: func(event.DeleteEvent) bool { return false },
		})).
		WithOptions(controller.Options{RateLimiter: watch.Patience[reconcile.Request]()}).
		Complete(r)
}

// requests finds the requests of an add-on that something is left to do about.
func (r *Reconciler) requests(ctx context.Context, addOn client.Object) []reconcile.Request {
	var list certificatesv1.CertificateSigningRequestList
	ofCluster, ofAddOn := labelindex.Is(names.LabelClusterName, addOn.GetNamespace()), client.MatchingLabels{names.LabelAddOnName: addOn.GetName()}
	// A cache read fails only while the process stops.
	if r.Client.List(ctx, &list, ofCluster, ofAddOn, client.UnsafeDisableDeepCopy) != nil {
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		if open(&list.Items[i]) {
			requests = append(requests, watch.Named("", list.Items[i].Name)...)
		}
	}
	return requests
}
