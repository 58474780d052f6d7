package origin

import (
	"context"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// Hub returns the hub that another product runs, or has left behind, on the cluster
// that reader reads; nil if there is none. Hub searches for operators in the given
// namespaces, or in all if none is given. Objects that reader may not list count as
// absent.
func Hub(ctx context.Context, reader client.Reader, namespaces ...string) (*Installation, error) {
	found := &Installation{title: "hub", command: "init"}
	err := found.operator(ctx, reader, names.ClusterManagerOperator, namespaces)
	if err != nil {
		return nil, err
	}
	components, err := list(ctx, reader, client.InNamespace(names.HubNamespace))
	if err != nil {
		return nil, err
	}
	found.add(components)
	if found.Webhooks, err = webhooks(ctx, reader); err != nil {
		return nil, err
	}
	return found.orNil(), nil
}

// Agent does for an agent what Hub does for a hub. The namespaces, if given, are
// those of operators and agents.
func Agent(ctx context.Context, reader client.Reader, namespaces ...string) (*Installation, error) {
	found := &Installation{title: "agent", command: "join"}
	if err := found.operator(ctx, reader, names.KlusterletOperator, namespaces); err != nil {
		return nil, err
	}
	agents, err := labels.NewRequirement("app", selection.In, []string{
		names.AppRegistrationAgent, names.AppWorkAgent, "klusterlet-agent",
	})
	if err != nil {
		return nil, err
	}
	components, err := within(ctx, reader, namespaces, client.MatchingLabelsSelector{Selector: labels.NewSelector().Add(*agents)})
	if err != nil {
		return nil, err
	}
	found.add(components)
	return found.orNil(), nil
}

// operator looks for the operator called name. In our own namespace any program
// that is not ours counts, because it would be replaced.
func (i *Installation) operator(ctx context.Context, reader client.Reader, name string, namespaces []string) error {
	candidates, err := within(ctx, reader, namespaces, client.MatchingFields{"metadata.name": name})
	for j := range candidates {
		d := &candidates[j]
		made := makerOf(d)
		if made == theirs || made == unknown && d.Namespace == names.OperatorNamespace {
			i.Operators = append(i.Operators, describe(d))
		}
	}
	return err
}

// add takes over the Deployments that are OCM's for sure. Others have every
// right to run Deployments in these namespaces.
func (i *Installation) add(components []appsv1.Deployment) {
	for j := range components {
		if makerOf(&components[j]) == theirs {
			i.Components = append(i.Components, describe(&components[j]))
		}
	}
}

func (i *Installation) orNil() *Installation {
	if len(i.Operators)+len(i.Components)+len(i.Webhooks) == 0 {
		return nil
	}
	return i
}

// within lists Deployments in namespaces, or in all if there are none.
func within(ctx context.Context, reader client.Reader, namespaces []string, options ...client.ListOption) ([]appsv1.Deployment, error) {
	if len(namespaces) == 0 {
		return list(ctx, reader, options...)
	}
	var all []appsv1.Deployment
	for _, namespace := range slices.Compact(slices.Sorted(slices.Values(namespaces))) {
		some, err := list(ctx, reader, append(slices.Clone(options), client.InNamespace(namespace))...)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

func list(ctx context.Context, reader client.Reader, options ...client.ListOption) ([]appsv1.Deployment, error) {
	var list appsv1.DeploymentList
	if err := reader.List(ctx, &list, options...); err != nil && !apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("deployments: %w", err)
	}
	return list.Items, nil
}

// webhookSuffixes end the names of the webhook configurations of OCM's hub. We
// have none: our rules are admission policies.
func webhookSuffixes() []string {
	return []string{".admission.cluster.open-cluster-management.io", ".admission.work.open-cluster-management.io"}
}

// webhooks returns the names of OCM's webhook configurations that call Services
// in the namespace of hubs.
func webhooks(ctx context.Context, reader client.Reader) ([]string, error) {
	var (
		validating admissionregistrationv1.ValidatingWebhookConfigurationList
		mutating   admissionregistrationv1.MutatingWebhookConfigurationList
		found      []string
	)
	for _, list := range []client.ObjectList{&validating, &mutating} {
		if err := reader.List(ctx, list); err != nil && !apierrors.IsForbidden(err) {
			return nil, fmt.Errorf("webhook configurations: %w", err)
		}
	}
	for i := range validating.Items {
		for j := range validating.Items[i].Webhooks {
			found = appendHooks(found, "validatingwebhookconfiguration/"+validating.Items[i].Name, validating.Items[i].Webhooks[j].ClientConfig)
		}
	}
	for i := range mutating.Items {
		for j := range mutating.Items[i].Webhooks {
			found = appendHooks(found, "mutatingwebhookconfiguration/"+mutating.Items[i].Name, mutating.Items[i].Webhooks[j].ClientConfig)
		}
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}

func appendHooks(found []string, name string, calls admissionregistrationv1.WebhookClientConfig) []string {
	known := slices.ContainsFunc(webhookSuffixes(), func(suffix string) bool { return strings.HasSuffix(name, suffix) })
	if !known || calls.Service == nil || calls.Service.Namespace != names.HubNamespace {
		return found
	}
	return append(found, name)
}
