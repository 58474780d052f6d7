package manager

import (
	"fmt"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/internal/addonconfig"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/internal/addonwork"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// progressing returns the condition that reports how far the configurations of an
// add-on were applied, nil for one that has none and deploys nothing. When all of them
// were, it notes so in the references.
func progressing(addOn *addonv1beta1.ManagedClusterAddOn, p plan, references []addonv1beta1.ConfigReference, works []*workv1.ManifestWork) *metav1.Condition {
	condition := &metav1.Condition{Type: addonv1beta1.ManagedClusterAddOnConditionProgressing, Status: metav1.ConditionFalse}
	switch {
	case len(p.unsupported) > 0:
		condition.Reason = addonv1beta1.ProgressingReasonConfigurationUnsupported
		condition.Message = unsupportedMessage(p.unsupported[0])
	case p.pending:
		condition.Reason = addonv1beta1.ProgressingReasonWaitingForCanary
		condition.Message = fmt.Sprintf("Waiting for its turn in the rollout of placement %s/%s", p.placement.Namespace, p.placement.Name)
	case !deployed(addOn, addonv1beta1.ManagedClusterAddOnManifestApplied):
		if len(references) == 0 {
			return nil
		}
		condition.Reason = names.ReasonWaitingForManifestApplied
		condition.Message = "Waiting for the add-on's own manager to report the condition ManifestApplied"
	case addOn.Annotations[names.AnnotationHostingCluster] != "" && !deployed(addOn, addonv1beta1.ManagedClusterAddOnHostingManifestApplied):
		condition.Reason = names.ReasonWaitingForHostingManifestApplied
		condition.Message = "Waiting for the add-on's own manager to report the condition HostingManifestApplied"
	default:
		apply(condition, addonconfig.Hashes(references), works)
	}
	if condition.Reason == addonv1beta1.ProgressingReasonCompleted {
		for i := range references {
			references[i].LastAppliedConfig = references[i].DesiredConfig.DeepCopy()
		}
	}
	return condition
}

func deployed(addOn *addonv1beta1.ManagedClusterAddOn, kind string) bool {
	return apimeta.FindStatusCondition(addOn.Status.Conditions, kind) != nil
}

// apply says how far the works of an add-on were applied.
func apply(condition *metav1.Condition, hashes map[string]string, works []*workv1.ManifestWork) {
	for _, work := range works {
		switch {
		case !addonwork.MadeFor(work, hashes):
			condition.Status, condition.Reason = metav1.ConditionTrue, addonv1beta1.ProgressingReasonProgressing
			condition.Message = fmt.Sprintf("Waiting for ManifestWork %s to be made for the present configurations", work.Name)
		case addonwork.Applied(work, workv1.WorkApplied) == metav1.ConditionFalse:
			condition.Reason = addonv1beta1.ProgressingReasonFailed
			condition.Message = fmt.Sprintf("The work agent cannot apply ManifestWork %s; see its conditions", work.Name)
		case addonwork.Applied(work, workv1.WorkApplied) != metav1.ConditionTrue, addonwork.Applied(work, workv1.WorkAvailable) != metav1.ConditionTrue:
			condition.Status, condition.Reason = metav1.ConditionTrue, addonv1beta1.ProgressingReasonProgressing
			condition.Message = fmt.Sprintf("Waiting for ManifestWork %s to be applied and available", work.Name)
		default:
			continue
		}
		return
	}
	condition.Reason, condition.Message = addonv1beta1.ProgressingReasonCompleted, "completed with no errors."
}
