package install

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apply"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// ErrSeveralAgents says that a cluster has several agents and none was named.
var ErrSeveralAgents = errors.New("several agents are installed here")

// NamedAgent returns the agent of the Klusterlet called name. An empty name is
// the one that join makes, or the only one there is.
func (r *Runner) NamedAgent(ctx context.Context, name string) (Agent, error) {
	var (
		a    Agent
		list operatorv1.KlusterletList
	)
	if err := r.Client.List(ctx, &list); err != nil {
		return a, fmt.Errorf("klusterlets: %w", err)
	}
	for i := range list.Items {
		k := &list.Items[i]
		if k.Name == cmp.Or(name, names.KlusterletName) || name == "" && len(list.Items) == 1 {
			a.Klusterlet = k
			return a, r.credential(ctx, &a)
		}
	}
	if name == "" && len(list.Items) > 1 {
		return a, ErrSeveralAgents
	}
	return a, ErrNoAgent
}

// Namespace is where the agent keeps its credentials.
func (a Agent) Namespace() string { return namespaceOf(a.Klusterlet) }

// Cluster is the name under which the agent has joined; empty if it has made up
// none yet.
func (a Agent) Cluster() string {
	return cmp.Or(string(a.Data[names.KeyClusterName]), a.Klusterlet.Spec.ClusterName)
}

// AwaitFlags waits until the operator has rolled out the agent with flags that
// are as wanted; what is missing is told by the returned sentence.
func (r *Runner) AwaitFlags(ctx context.Context, a Agent, missing func(args []string) string) error {
	agent := &unstructured.Unstructured{}
	agent.SetAPIVersion("apps/v1")
	agent.SetKind("Deployment")
	agent.SetNamespace(a.Namespace())
	agent.SetName(names.RegistrationAgentDeployment(a.Klusterlet.Name))
	klusterlet := &operatorv1.Klusterlet{}
	klusterlet.Name = a.Klusterlet.Name
	return r.await(ctx, "Waiting for the agent",
		apply.Target{Object: klusterlet, Check: apply.Condition("Applied", "True")},
		apply.Target{Object: agent, Check: func(obj *unstructured.Unstructured) apply.Verdict {
			if obj != nil {
				if why := missing(argsOf(obj)); why != "" {
					return apply.Verdict{Message: why}
				}
			}
			return apply.DeploymentReady()(obj)
		}})
}

// argsOf returns the arguments of a Deployment's first container.
func argsOf(deployment *unstructured.Unstructured) []string {
	containers, _, _ := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "containers")
	if len(containers) == 0 {
		return nil
	}
	first, ok := containers[0].(map[string]any)
	if !ok {
		return nil
	}
	args, _, _ := unstructured.NestedStringSlice(first, "args")
	return args
}

// SetAddOnDriver changes how the add-ons of a managed cluster register. Only
// this field is written.
func (r *Runner) SetAddOnDriver(ctx context.Context, a Agent, want *operatorv1.AddOnRegistrationDriver) error {
	k := a.Klusterlet.DeepCopy()
	base := client.MergeFrom(a.Klusterlet.DeepCopy())
	if k.Spec.RegistrationConfiguration == nil {
		k.Spec.RegistrationConfiguration = &operatorv1.RegistrationConfiguration{}
	}
	k.Spec.RegistrationConfiguration.AddOnKubeClientRegistrationDriver = want
	if err := r.Client.Patch(ctx, k, base, client.FieldOwner(FieldManager)); err != nil {
		return fmt.Errorf("klusterlet %s: %w", k.Name, err)
	}
	return nil
}

// PublishesIssuer reports whether a Klusterlet asks its agent to publish the
// cluster's token issuer; said is false where it asks for nothing.
func (a Agent) PublishesIssuer() (publishes, said bool) {
	value := a.Klusterlet.Annotations[names.AnnotationPublishIssuer]
	return value == "true", value == "true" || value == "false"
}

// SetPublishIssuer has the agent of a managed cluster publish the cluster's
// token issuer, or take it back. Only this annotation is written.
func (r *Runner) SetPublishIssuer(ctx context.Context, a Agent, publish bool) error {
	k := a.Klusterlet.DeepCopy()
	base := client.MergeFrom(a.Klusterlet.DeepCopy())
	k.Annotations = mergeMap(k.Annotations, map[string]string{names.AnnotationPublishIssuer: strconv.FormatBool(publish)})
	if err := r.Client.Patch(ctx, k, base, client.FieldOwner(FieldManager)); err != nil {
		return fmt.Errorf("klusterlet %s: %w", k.Name, err)
	}
	return nil
}

// AwaitIssuerPublished waits until the agent has told that the hub holds the
// cluster's issuer.
func (r *Runner) AwaitIssuerPublished(ctx context.Context, a Agent) error {
	klusterlet := &operatorv1.Klusterlet{}
	klusterlet.Name = a.Klusterlet.Name
	return r.await(ctx, "Waiting for the keys to be published",
		apply.Target{Object: klusterlet, Check: apply.Condition(names.ConditionIssuerPublished, "True")})
}

// AwaitIssuerWithdrawn waits until the agent tells of no issuer any more.
func (r *Runner) AwaitIssuerWithdrawn(ctx context.Context, a Agent) error {
	klusterlet := &operatorv1.Klusterlet{}
	klusterlet.Name = a.Klusterlet.Name
	return r.await(ctx, "Waiting for the keys to be taken back", apply.Target{Object: klusterlet, Check: withoutIssuer})
}

func withoutIssuer(obj *unstructured.Unstructured) apply.Verdict {
	if obj == nil {
		return apply.Verdict{Done: true}
	}
	conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	for _, c := range conditions {
		if condition, ok := c.(map[string]any); ok && condition["type"] == names.ConditionIssuerPublished {
			return apply.Verdict{Message: "the agent has not said yet that the hub holds none"}
		}
	}
	return apply.Verdict{Done: true}
}

// AddOnDriver returns how the add-ons of a managed cluster register.
func (a Agent) AddOnDriver() operatorv1.AddOnRegistrationDriver {
	if c := a.Klusterlet.Spec.RegistrationConfiguration; c != nil && c.AddOnKubeClientRegistrationDriver != nil {
		return *c.AddOnKubeClientRegistrationDriver
	}
	return operatorv1.AddOnRegistrationDriver{}
}
