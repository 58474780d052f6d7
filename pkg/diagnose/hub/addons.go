package hub

import (
	"context"
	"fmt"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/inventory"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/diagnose"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/finding"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/excerpt"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/operator/clustermanager"
)

// addOnManager checks the controller that creates the ServiceAccounts of add-ons with tokens.
func (h *Hub) addOnManager(ctx context.Context) finding.Outcome {
	c := apimeta.FindStatusCondition(h.manager.Status.Conditions, clustermanager.ConditionHubAddOnManagerDegraded)
	if c != nil && c.Reason == clustermanager.ReasonAddOnManagementDisabled {
		return finding.Good("%s", c.Message)
	}
	return h.Deployment(names.HubNamespace, names.HubAddOnManagerDeployment(names.ClusterManagerName))(ctx)
}

// addOnWebhook checks the conversion webhook, which clients of v1alpha1 need. No component of
// ours is such a client.
func (h *Hub) addOnWebhook(ctx context.Context) finding.Outcome {
	if h.other != nil {
		return h.Deployment(names.HubNamespace, names.HubAddOnWebhookDeployment(names.ClusterManagerName))(ctx)
	}
	c := apimeta.FindStatusCondition(h.manager.Status.Conditions, clustermanager.ConditionHubAddOnWebhookDegraded)
	switch {
	case c == nil:
		return finding.Caution(h.Command("init --wait"), "the operator has not reported %s yet", clustermanager.ConditionHubAddOnWebhookDegraded)
	case c.Status != metav1.ConditionFalse:
		return finding.Caution(h.Kubectl("-n", names.HubNamespace, "get deployment,pods"), "%s (%s)", c.Message, c.Reason)
	}
	return finding.Good("%s", c.Message)
}

// addOns checks the add-ons of all clusters. An expired credential locks an add-on out.
func (h *Hub) addOns(ctx context.Context) finding.Outcome {
	if !h.ServesAddOns() {
		return finding.Good(diagnose.NoAddOns)
	}
	list, err := inventory.List(ctx, h.Client, inventory.Filter{}, h.Clock.Now(), h.Warn)
	if err != nil {
		return finding.Broken(err)
	}
	var expired, open []string
	for _, a := range list {
		switch {
		case a.Reason == inventory.ReasonDeleting, a.State == inventory.Ready:
		case a.State == inventory.Expired:
			expired = append(expired, a.Cluster+"/"+a.Name)
		default:
			open = append(open, fmt.Sprintf("%s/%s (%s)", a.Cluster, a.Name, a.Reason))
		}
	}
	text := fmt.Sprintf("%d add-ons", len(list))
	if len(open) > 0 {
		text += fmt.Sprintf("\n%d wait or fail: %s", len(open), excerpt.List(open, ", "))
	}
	switch {
	case len(expired) > 0:
		return finding.Bad(h.Command("addon-auth status"), "%s\n%d with an expired credential: %s", text, len(expired), excerpt.List(expired, ", "))
	case len(open) > 0:
		return finding.Caution(h.Command("addon-auth status"), "%s", text)
	}
	return finding.Good("%s", text)
}
