package template

import (
	"github.com/prometheus/client_golang/prometheus"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/internal/addonmetrics"
)

// NewMetrics registers how many add-ons are deployed, and which are not.
func NewMetrics(registry prometheus.Registerer) (*addonmetrics.Readiness, error) {
	return addonmetrics.New(registry, prometheus.GaugeOpts{
		Name: "ocm_addon_template_deployed",
		Help: "Number of add-ons made from AddOnTemplates that have their permissions and whose ManifestWorks are applied.",
	}, prometheus.GaugeOpts{
		Name: "ocm_addon_template_not_deployed",
		Help: "1 for each add-on made from an AddOnTemplate whose permissions or ManifestWorks could not be applied, by the reason in its condition.",
	})
}

// deployed returns the condition that says whether an add-on is deployed: the first that
// is False of those about its permissions and its works, else the last; nil while that is
// not known.
func deployed(conditions []metav1.Condition) *metav1.Condition {
	registration := apimeta.FindStatusCondition(conditions, addonv1beta1.ManagedClusterAddOnRegistrationApplied)
	if registration != nil && registration.Status == metav1.ConditionFalse {
		return registration
	}
	return apimeta.FindStatusCondition(conditions, addonv1beta1.ManagedClusterAddOnManifestApplied)
}
