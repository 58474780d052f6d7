package check

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/inventory"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/addons"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/finding"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/excerpt"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pemutil"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/operator/clustermanager"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/operator/klusterlet"
)

// registered checks that every add-on of the cluster has what it asks for.
func (c *clusterScope) registered(ctx context.Context) finding.Outcome {
	if err := addons.RequireHub(ctx, c.env, c.client); err != nil {
		return finding.Good("this hub serves no add-ons")
	}
	var err error
	if c.addOns, err = inventory.ListExplained(ctx, c.client, inventory.Filter{Clusters: []string{c.name}}, c.env.Now(), c.env.Warn); err != nil {
		return finding.Broken(err)
	}
	var open []string
	count := 0
	for _, a := range c.addOns {
		for _, r := range a.Rows() {
			count++
			if r.State != inventory.Ready && r.State != inventory.Overdue && r.State != inventory.Expired && r.Reason != inventory.ReasonDeleting {
				open = append(open, fmt.Sprintf("%s: %s (%s)", strings.TrimSuffix(r.AddOn+"/"+r.SignerName, "/"), r.Message, r.Reason))
			}
		}
	}
	switch {
	case len(open) > 0:
		return finding.Bad(c.env.Command("addon-auth status --cluster", c.name), "%s", strings.Join(open, "\n"))
	case count == 0:
		return finding.Good("it has no add-ons")
	}
	return finding.Good("%d registrations", count)
}

// lasting checks that the agent renews the credentials of its add-ons in time.
func (c *clusterScope) lasting(context.Context) finding.Outcome {
	var late []string
	failed := false
	for _, a := range c.addOns {
		for _, r := range a.Registrations {
			if r.State == inventory.Overdue || r.State == inventory.Expired {
				late = append(late, r.AddOn+": "+r.Message)
				failed = failed || r.Reason != inventory.ReasonNotRenewed
			}
		}
	}
	try := "on the managed cluster: " + c.env.Elsewhere("check agent")
	switch {
	case failed:
		return finding.Bad(try, "%s", strings.Join(late, "\n"))
	case len(late) > 0:
		return finding.Caution(try, "%s", strings.Join(late, "\n"))
	}
	return finding.Good("")
}

// addOnManager checks what makes the identities of add-ons with tokens.
func (h *hubScope) addOnManager(ctx context.Context) finding.Outcome {
	c := apimeta.FindStatusCondition(h.manager.Status.Conditions, clustermanager.ConditionHubAddOnManagerDegraded)
	if c != nil && c.Reason == clustermanager.ReasonAddOnManagementDisabled {
		return finding.Good("%s", c.Message)
	}
	return h.deployment(names.HubNamespace, names.HubAddOnManagerDeployment(names.ClusterManagerName))(ctx)
}

// addOnWebhook checks what clients of v1alpha1 need; nothing of ours is one.
func (h *hubScope) addOnWebhook(ctx context.Context) finding.Outcome {
	if h.other != nil {
		return h.deployment(names.HubNamespace, names.HubAddOnWebhookDeployment(names.ClusterManagerName))(ctx)
	}
	c := apimeta.FindStatusCondition(h.manager.Status.Conditions, clustermanager.ConditionHubAddOnWebhookDegraded)
	switch {
	case c == nil:
		return finding.Caution(h.env.Command("init --wait"), "the operator has not reported %s yet", clustermanager.ConditionHubAddOnWebhookDegraded)
	case c.Status != metav1.ConditionFalse:
		return finding.Caution(h.env.Kubectl("-n", names.HubNamespace, "get deployment,pods"), "%s (%s)", c.Message, c.Reason)
	}
	return finding.Good("%s", c.Message)
}

// addOns checks the add-ons of all clusters. An expired credential locks an add-on out.
func (h *hubScope) addOns(ctx context.Context) finding.Outcome {
	if err := addons.RequireHub(ctx, h.env, h.client); err != nil {
		return finding.Good("this hub serves no add-ons")
	}
	list, err := inventory.List(ctx, h.client, inventory.Filter{}, h.env.Now(), h.env.Warn)
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
		return finding.Bad(h.env.Command("addon-auth status"), "%s\n%d with an expired credential: %s", text, len(expired), excerpt.List(expired, ", "))
	case len(open) > 0:
		return finding.Caution(h.env.Command("addon-auth status"), "%s", text)
	}
	return finding.Good("%s", text)
}

// addOnDriver checks how the Klusterlet wants add-ons to authenticate.
func (a *agentScope) addOnDriver(context.Context) finding.Outcome {
	c := apimeta.FindStatusCondition(a.klusterlet.Status.Conditions, klusterlet.ConditionAddOnRegistration)
	switch {
	case c == nil:
		return finding.Good("the operator does not say")
	case c.Status != metav1.ConditionTrue:
		return finding.Bad(a.env.Command("addon-auth set"), "%s", c.Message)
	case c.Reason == klusterlet.ReasonShortTokens:
		return finding.Caution(a.env.Command("addon-auth set --expiration-seconds 86400"), "%s", c.Message)
	}
	return finding.Good("%s", c.Message)
}

// addOnSecrets checks what the agent keeps for the add-ons of this cluster.
func (a *agentScope) addOnSecrets(ctx context.Context) finding.Outcome {
	var list corev1.SecretList
	if err := a.client.List(ctx, &list, client.MatchingLabels{names.LabelAddOnCredential: a.namespace()}); err != nil {
		return finding.Broken(err)
	}
	now := a.env.Clock.Now()
	var ended []string
	for i := range list.Items {
		secret := &list.Items[i]
		end, err := credentialEnd(secret.Data)
		switch {
		case err != nil:
			ended = append(ended, fmt.Sprintf("Secret %s/%s: %v", secret.Namespace, secret.Name, err))
		case !now.Before(end):
			ended = append(ended, fmt.Sprintf("Secret %s/%s expired at %s", secret.Namespace, secret.Name, end.UTC().Format(time.RFC3339)))
		}
	}
	if len(ended) > 0 {
		return finding.Bad("on the hub: "+a.env.Elsewhere("addon-auth status --cluster", a.klusterlet.Spec.ClusterName), "%s", strings.Join(ended, "\n"))
	}
	return finding.Good("%d Secrets", len(list.Items))
}

// credentialEnd is when the credential in a Secret ends.
func credentialEnd(data map[string][]byte) (time.Time, error) {
	if text := data[names.KeyExpiration]; len(text) > 0 {
		end, err := time.Parse(time.RFC3339, string(text))
		if err != nil {
			return end, fmt.Errorf("key %s is no time", names.KeyExpiration)
		}
		return end, nil
	}
	certs, err := pemutil.ParseCertificates(data[names.KeyTLSCert])
	if err != nil {
		return time.Time{}, fmt.Errorf("there is neither a token nor a certificate in it: %w", err)
	}
	return certs[0].NotAfter, nil
}
