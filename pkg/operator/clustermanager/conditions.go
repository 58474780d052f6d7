package clustermanager

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// Reasons of the condition Applied that are ours.
const (
	// ReasonDriverNotSupported is about spec.registrationConfiguration.registrationDrivers.
	ReasonDriverNotSupported = "RegistrationDriverNotSupported"
	// ReasonDriverInUse is about a driver that was removed from
	// spec.registrationConfiguration while clusters are registered by it.
	ReasonDriverInUse = "RegistrationDriverInUse"
	// ReasonSettingInvalid is about another setting that the registration
	// controller rejects.
	ReasonSettingInvalid = "RegistrationSettingInvalid"
	// ReasonAnotherClusterManager is about a hub that belongs to another ClusterManager.
	ReasonAnotherClusterManager = "AnotherClusterManager"
	// ReasonDeleting is the reason while a deletion is in progress.
	ReasonDeleting = "ClusterManagerDeleting"
	// ReasonHubResourceApplyFailed is about namespaces, RBAC and Secrets.
	ReasonHubResourceApplyFailed = "HubResourceApplyFailed"
	// ReasonPlacementNotDeployed is the reason without a placement controller.
	ReasonPlacementNotDeployed = "PlacementNotDeployed"
)

// ConditionHubAddOnManagerDegraded reports whether the add-on manager works. OCM has
// neither the condition nor its reasons.
const (
	ConditionHubAddOnManagerDegraded      = "HubAddOnManagerDegraded"
	ReasonAddOnManagerFunctional          = "AddOnManagerFunctional"
	ReasonUnavailableAddOnManagerPod      = "UnavailableAddOnManagerPod"
	ReasonGetAddOnManagerDeploymentFailed = "GetAddOnManagerDeploymentFailed"
	ReasonAddOnManagementDisabled         = "AddOnManagementDisabled"
)

// ConditionHubAddOnWebhookDegraded reports whether add-ons can be read and written in
// v1alpha1 of their API. OCM has neither the condition nor its reasons.
const (
	ConditionHubAddOnWebhookDegraded      = "HubAddOnWebhookDegraded"
	ReasonAddOnWebhookFunctional          = "AddOnWebhookFunctional"
	ReasonUnavailableAddOnWebhookPod      = "UnavailableAddOnWebhookPod"
	ReasonGetAddOnWebhookDeploymentFailed = "GetAddOnWebhookDeploymentFailed"
	ReasonAddOnWebhookNotTrusted          = "AddOnWebhookNotTrusted"
)

// ConditionHubTokenAuthorizerDegraded reports, on a hub that has one, whether the
// token authorizer works. OCM has neither the condition nor its reasons.
const (
	ConditionHubTokenAuthorizerDegraded      = "HubTokenAuthorizerDegraded"
	ReasonTokenAuthorizerFunctional          = "TokenAuthorizerFunctional"
	ReasonUnavailableTokenAuthorizerPod      = "UnavailableTokenAuthorizerPod"
	ReasonGetTokenAuthorizerDeploymentFailed = "GetTokenAuthorizerDeploymentFailed"
)

// component is a Deployment of the hub and the condition that reports its state.
type component struct {
	deployment string
	condition  string
	// unavailable, missing and functional are the reasons, works the message for
	// functional.
	unavailable, missing, functional string
	works                            string
	// otherwise is a sentence about the consequence of having no pod.
	otherwise string
}

// components returns the Deployments of a hub.
func components(values *manifests.Hub) []component {
	all := []component{{
		deployment:  names.HubRegistrationDeployment(values.Name),
		condition:   operatorv1.ConditionHubRegistrationDegraded,
		unavailable: operatorv1.ReasonUnavailableRegistrationPod,
		missing:     operatorv1.ReasonGetRegistrationDeploymentFailed,
		functional:  operatorv1.ReasonRegistrationFunctional,
		works:       "Registration is managing credentials",
	}, {
		deployment:  names.HubAddOnWebhookDeployment(values.Name),
		condition:   ConditionHubAddOnWebhookDegraded,
		unavailable: ReasonUnavailableAddOnWebhookPod,
		missing:     ReasonGetAddOnWebhookDeploymentFailed,
		functional:  ReasonAddOnWebhookFunctional,
		works:       "Add-ons are converted between v1alpha1 and v1beta1",
		otherwise:   ". Requests for add-ons in v1alpha1 fail until then, and server-side apply to add-ons that were written in v1alpha1; other requests in v1beta1 do not need the webhook, and nothing is lost",
	}}
	if values.AddOnManager != nil {
		all = append(all, component{
			deployment:  names.HubAddOnManagerDeployment(values.Name),
			condition:   ConditionHubAddOnManagerDegraded,
			unavailable: ReasonUnavailableAddOnManagerPod,
			missing:     ReasonGetAddOnManagerDeploymentFailed,
			functional:  ReasonAddOnManagerFunctional,
			works:       "The add-on manager is managing add-ons",
		})
	}
	if values.TokenAuthorizer != nil {
		all = append(all, component{
			deployment:  names.TokenAuthorizer,
			condition:   ConditionHubTokenAuthorizerDegraded,
			unavailable: ReasonUnavailableTokenAuthorizerPod,
			missing:     ReasonGetTokenAuthorizerDeploymentFailed,
			functional:  ReasonTokenAuthorizerFunctional,
			works:       "The token authorizer is exchanging tokens",
			otherwise:   ". Every request that is sent to it is denied until then",
		})
	}
	return all
}

// evaluateDeployments sets the conditions of the hub's Deployments.
func (r *Reconciler) evaluateDeployments(ctx context.Context, s *scope) {
	var rolling []string
	for _, c := range components(&s.Values) {
		degraded, settled := r.evaluateDeployment(ctx, c)
		s.Status.Set(degraded)
		if !settled {
			rolling = append(rolling, c.deployment)
		}
	}
	progressing := metav1.Condition{
		Type: operatorv1.ConditionProgressing, Status: metav1.ConditionFalse,
		Reason: operatorv1.ReasonUpToDate, Message: "Components of cluster manager are up to date",
	}
	if len(rolling) > 0 {
		progressing.Status, progressing.Reason = metav1.ConditionTrue, operatorv1.ReasonDeploymentRolling
		progressing.Message = fmt.Sprintf("Deployments %s is still rolling", strings.Join(rolling, ","))
	}
	s.Status.Set(progressing)
	if s.Values.AddOnManager == nil {
		s.Status.Set(metav1.Condition{
			Type: ConditionHubAddOnManagerDegraded, Status: metav1.ConditionFalse, Reason: ReasonAddOnManagementDisabled,
			Message: "The feature gate AddonManagement is off: add-ons are neither installed nor given identities by this hub",
		})
	}
	if len(s.Values.WebhookCA) == 0 {
		s.Status.Set(metav1.Condition{
			Type: ConditionHubAddOnWebhookDegraded, Status: metav1.ConditionTrue, Reason: ReasonAddOnWebhookNotTrusted,
			Message: fmt.Sprintf("The CA of the webhook is not in the ConfigMap %s/%s yet. Requests for add-ons in v1alpha1 fail until then, and server-side apply to add-ons that were written in v1alpha1; other requests in v1beta1 do not need the webhook, and nothing is lost",
				names.HubNamespace, names.CABundleConfigMap),
		})
	}
	s.Status.Set(metav1.Condition{
		Type: operatorv1.ConditionHubPlacementDegraded, Status: metav1.ConditionFalse,
		Reason: ReasonPlacementNotDeployed, Message: "This version deploys no placement controller",
	})
}

// evaluateDeployment returns the condition of one Deployment, and whether it has
// rolled out.
func (r *Reconciler) evaluateDeployment(ctx context.Context, c component) (degraded metav1.Condition, settled bool) {
	degraded = metav1.Condition{Type: c.condition, Status: metav1.ConditionTrue, Reason: c.unavailable}
	key := client.ObjectKey{Namespace: names.HubNamespace, Name: c.deployment}
	var deployment appsv1.Deployment
	err := r.Client.Get(ctx, key, &deployment)
	switch wanted, available := replicasOf(&deployment), deployment.Status.AvailableReplicas; {
	case err != nil:
		degraded.Reason = c.missing
		degraded.Message = fmt.Sprintf("The deployment %s does not exist yet", key)
		if client.IgnoreNotFound(err) != nil {
			degraded.Message = fmt.Sprintf("The deployment %s: %v", key, err)
		}
		degraded.Message += c.otherwise
	case available < wanted:
		degraded.Message = fmt.Sprintf("%d of %d pods of the deployment %s are available: run kubectl -n %s get pods",
			available, wanted, key, key.Namespace)
		if available == 0 {
			degraded.Message += c.otherwise
		}
	default:
		degraded.Status, degraded.Reason = metav1.ConditionFalse, c.functional
		degraded.Message = c.works
	}
	return degraded, err == nil && rolledOut(&deployment)
}

// rolledOut reports whether every pod runs the current template and is available.
func rolledOut(d *appsv1.Deployment) bool {
	wanted := replicasOf(d)
	return d.Status.ObservedGeneration >= d.Generation && d.Status.UpdatedReplicas >= wanted &&
		d.Status.Replicas == d.Status.UpdatedReplicas && d.Status.AvailableReplicas >= wanted
}

func replicasOf(d *appsv1.Deployment) int32 {
	if d.Spec.Replicas == nil {
		return 1
	}
	return *d.Spec.Replicas
}
