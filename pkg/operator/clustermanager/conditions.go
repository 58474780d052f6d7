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
	// ReasonModeNotSupported is about spec.deployOption.mode.
	ReasonModeNotSupported = "InstallModeNotSupported"
	// ReasonDriverNotSupported is about spec.registrationConfiguration.registrationDrivers.
	ReasonDriverNotSupported = "RegistrationDriverNotSupported"
	// ReasonDriverInUse says that spec.registrationConfiguration no longer has what
	// clusters are registered by.
	ReasonDriverInUse = "RegistrationDriverInUse"
	// ReasonSettingInvalid is about another setting that the registration
	// controller would refuse.
	ReasonSettingInvalid = "RegistrationSettingInvalid"
	// ReasonAnotherClusterManager says that the hub belongs to another ClusterManager.
	ReasonAnotherClusterManager = "AnotherClusterManager"
	// ReasonDeleting says what a deletion waits for.
	ReasonDeleting = "ClusterManagerDeleting"
	// ReasonHubResourceApplyFailed is about namespaces, rights and secrets.
	ReasonHubResourceApplyFailed = "HubResourceApplyFailed"
	// ReasonPlacementNotDeployed says that there is no placement controller to judge.
	ReasonPlacementNotDeployed = "PlacementNotDeployed"
)

// ConditionHubAddOnManagerDegraded tells whether the add-on manager works. It is
// ours, like its reasons; upstream has none.
const (
	ConditionHubAddOnManagerDegraded      = "HubAddOnManagerDegraded"
	ReasonAddOnManagerFunctional          = "AddOnManagerFunctional"
	ReasonUnavailableAddOnManagerPod      = "UnavailableAddOnManagerPod"
	ReasonGetAddOnManagerDeploymentFailed = "GetAddOnManagerDeploymentFailed"
	ReasonAddOnManagementDisabled         = "AddOnManagementDisabled"
)

// ConditionHubAddOnWebhookDegraded tells whether add-ons can be read and written
// in v1alpha1 of their API. It is ours, like its reasons; upstream has none.
const (
	ConditionHubAddOnWebhookDegraded      = "HubAddOnWebhookDegraded"
	ReasonAddOnWebhookFunctional          = "AddOnWebhookFunctional"
	ReasonUnavailableAddOnWebhookPod      = "UnavailableAddOnWebhookPod"
	ReasonGetAddOnWebhookDeploymentFailed = "GetAddOnWebhookDeploymentFailed"
	ReasonAddOnWebhookNotTrusted          = "AddOnWebhookNotTrusted"
)

// ConditionHubTokenAuthorizerDegraded tells, on a hub that has one, whether the
// token authorizer works. It is ours, like its reasons; upstream has none.
const (
	ConditionHubTokenAuthorizerDegraded      = "HubTokenAuthorizerDegraded"
	ReasonTokenAuthorizerFunctional          = "TokenAuthorizerFunctional"
	ReasonUnavailableTokenAuthorizerPod      = "UnavailableTokenAuthorizerPod"
	ReasonGetTokenAuthorizerDeploymentFailed = "GetTokenAuthorizerDeploymentFailed"
)

// judged is a Deployment of the hub and the condition that tells how it is.
type judged struct {
	deployment string
	condition  string
	// unavailable, missing and functional are the reasons, works the message of
	// the last.
	unavailable, missing, functional string
	works                            string
	// otherwise is a sentence about what does not work without any pod.
	otherwise string
}

// components are the Deployments of a hub.
func components(values *manifests.Hub) []judged {
	all := []judged{{
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
		all = append(all, judged{
			deployment:  names.HubAddOnManagerDeployment(values.Name),
			condition:   ConditionHubAddOnManagerDegraded,
			unavailable: ReasonUnavailableAddOnManagerPod,
			missing:     ReasonGetAddOnManagerDeploymentFailed,
			functional:  ReasonAddOnManagerFunctional,
			works:       "The add-on manager is managing add-ons",
		})
	}
	if values.TokenAuthorizer != nil {
		all = append(all, judged{
			deployment:  names.TokenAuthorizer,
			condition:   ConditionHubTokenAuthorizerDegraded,
			unavailable: ReasonUnavailableTokenAuthorizerPod,
			missing:     ReasonGetTokenAuthorizerDeploymentFailed,
			functional:  ReasonTokenAuthorizerFunctional,
			works:       "The token authorizer is exchanging tokens",
			otherwise:   ". Every request that asks it is refused until then",
		})
	}
	return all
}

// judgeDeployments says how the hub's pods are.
func (r *Reconciler) judgeDeployments(ctx context.Context, s *scope) {
	var rolling []string
	for _, component := range components(&s.Values) {
		degraded, settled := r.judgeDeployment(ctx, component)
		s.Status.Set(degraded)
		if !settled {
			rolling = append(rolling, component.deployment)
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

// judgeDeployment says how one Deployment is, and whether it has rolled out.
func (r *Reconciler) judgeDeployment(ctx context.Context, component judged) (degraded metav1.Condition, settled bool) {
	degraded = metav1.Condition{Type: component.condition, Status: metav1.ConditionTrue, Reason: component.unavailable}
	key := client.ObjectKey{Namespace: names.HubNamespace, Name: component.deployment}
	var deployment appsv1.Deployment
	err := r.client.Get(ctx, key, &deployment)
	switch wanted, available := replicasOf(&deployment), deployment.Status.AvailableReplicas; {
	case err != nil:
		degraded.Reason = component.missing
		degraded.Message = fmt.Sprintf("The deployment %s is not there yet", key)
		if client.IgnoreNotFound(err) != nil {
			degraded.Message = fmt.Sprintf("The deployment %s: %v", key, err)
		}
		degraded.Message += component.otherwise
	case available < wanted:
		degraded.Message = fmt.Sprintf("%d of %d pods of the deployment %s are available: look at kubectl -n %s get pods",
			available, wanted, key, key.Namespace)
		if available == 0 {
			degraded.Message += component.otherwise
		}
	default:
		degraded.Status, degraded.Reason = metav1.ConditionFalse, component.functional
		degraded.Message = component.works
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
