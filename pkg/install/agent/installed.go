package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apply"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/lookup"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/token"
)

// ErrSeveralAgents says that a cluster has several agents and none was named.
var ErrSeveralAgents = errors.New("several agents are installed here")

// Named returns the agent of the Klusterlet called name. An empty name is the
// default one, or the only one.
func (r Runner) Named(ctx context.Context, name string) (Installed, error) {
	var (
		a    Installed
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

// Namespace is the namespace with the agent's credentials.
func (a Installed) Namespace() string { return lookup.Namespace(a.Klusterlet) }

// Cluster is the name under which the agent is registered; empty if it has not
// generated one yet.
func (a Installed) Cluster() string {
	return cmp.Or(string(a.Data[names.KeyClusterName]), a.Klusterlet.Spec.ClusterName)
}

// AwaitFlags waits until the operator has rolled out the agent with flags that
// are as wanted; missing returns what is not, or "".
func (r Runner) AwaitFlags(ctx context.Context, a Installed, missing func(args []string) string) error {
	agent := install.DeploymentReady(a.Namespace(), names.RegistrationAgentDeployment(a.Klusterlet.Name))
	ready := agent.Check
	agent.Check = func(obj *unstructured.Unstructured) apply.Result {
		if obj != nil {
			if why := missing(argsOf(obj)); why != "" {
				return apply.Result{Message: why}
			}
		}
		return ready(obj)
	}
	return r.Await(ctx, "Waiting for the agent",
		apply.Target{Object: named(a.Klusterlet.Name), Check: apply.Condition("Applied", "True")}, agent)
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
func (r Runner) SetAddOnDriver(ctx context.Context, a Installed, want *operatorv1.AddOnRegistrationDriver) error {
	return r.patch(ctx, a, func(k *operatorv1.Klusterlet) {
		if k.Spec.RegistrationConfiguration == nil {
			k.Spec.RegistrationConfiguration = &operatorv1.RegistrationConfiguration{}
		}
		k.Spec.RegistrationConfiguration.AddOnKubeClientRegistrationDriver = want
	})
}

// patch writes a change of an agent's Klusterlet.
func (r Runner) patch(ctx context.Context, a Installed, change func(*operatorv1.Klusterlet)) error {
	k := a.Klusterlet.DeepCopy()
	change(k)
	if err := r.Client.Patch(ctx, k, client.MergeFrom(a.Klusterlet), client.FieldOwner(install.FieldManager)); err != nil {
		return fmt.Errorf("change Klusterlet %s: %w", k.Name, err)
	}
	return nil
}

// PublishesIssuer reports whether a Klusterlet asks its agent to publish the
// cluster's token issuer; said is false if it sets neither.
func (a Installed) PublishesIssuer() (publishes, said bool) {
	value := a.Klusterlet.Annotations[names.AnnotationPublishIssuer]
	return value == "true", value == "true" || value == "false"
}

// SetPublishIssuer has the agent of a managed cluster publish the cluster's
// token issuer, or withdraw it. Only this annotation is written.
func (r Runner) SetPublishIssuer(ctx context.Context, a Installed, publish bool) error {
	return r.patch(ctx, a, func(k *operatorv1.Klusterlet) {
		k.Annotations = install.MergeMap(k.Annotations, map[string]string{names.AnnotationPublishIssuer: strconv.FormatBool(publish)})
	})
}

// AwaitIssuerPublished waits until the agent reports that the hub has the cluster's
// issuer.
func (r Runner) AwaitIssuerPublished(ctx context.Context, a Installed) error {
	return r.Await(ctx, "Waiting for the keys to be published",
		apply.Target{Object: named(a.Klusterlet.Name), Check: apply.Condition(names.ConditionIssuerPublished, "True")})
}

// AwaitIssuerWithdrawn waits until the agent reports no published issuer.
func (r Runner) AwaitIssuerWithdrawn(ctx context.Context, a Installed) error {
	return r.Await(ctx, "Waiting for the keys to be withdrawn", apply.Target{Object: named(a.Klusterlet.Name), Check: withoutIssuer})
}

func withoutIssuer(obj *unstructured.Unstructured) apply.Result {
	if obj == nil {
		return apply.Result{Done: true}
	}
	if _, ok := apply.ConditionOf(obj, names.ConditionIssuerPublished); ok {
		return apply.Result{Message: "the agent has not yet reported that the hub has none"}
	}
	return apply.Result{Done: true}
}

// AddOnDriver returns how the add-ons of a managed cluster register.
func (a Installed) AddOnDriver() operatorv1.AddOnRegistrationDriver {
	if c := a.Klusterlet.Spec.RegistrationConfiguration; c != nil && c.AddOnKubeClientRegistrationDriver != nil {
		return *c.AddOnKubeClientRegistrationDriver
	}
	return operatorv1.AddOnRegistrationDriver{}
}

// AddOnTokenLifetime returns the lifetime of the tokens that the agent requests for add-ons,
// and 0 if it requests certificates.
func (a Installed) AddOnTokenLifetime() time.Duration {
	want := a.AddOnDriver()
	if want.AuthType != string(driver.Token) {
		return 0
	}
	seconds := token.DefaultExpirationSeconds
	if want.Token != nil && want.Token.ExpirationSeconds > 0 {
		seconds = want.Token.ExpirationSeconds
	}
	return time.Duration(seconds) * time.Second
}
