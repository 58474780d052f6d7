package operand

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Component is a component that would not start with some settings of its resource.
type Component struct {
	// Name and Kind name the component in conditions: "registration controller" and
	// "controller".
	Name, Kind string
	// Deployment is the Deployment that runs it.
	Deployment client.ObjectKey
	// Phase is the index of the first phase that needs its settings.
	Phase int
	// Args points to the flags that it is rendered with.
	Args *[]string
	// Account is its ServiceAccount, Annotations points to the annotations of that, and
	// Keys are the annotations that depend on its settings.
	Account     client.ObjectKey
	Annotations *map[string]string
	Keys        []string
}

// RetainSettings retains the last valid settings of a component for which a setting
// is rejected, so that no crashing pod replaces a running one: the flags of its
// Deployment, and the annotations of its ServiceAccount. A component that does not run is
// not created. It returns the phases to run and extends the message of rejected with
// the consequence; all phases run when rejected is nil. live must read from the API
// server: a stale cache would restore outdated settings, or remove current ones.
func RetainSettings[V any](ctx context.Context, live client.Reader, c Component, rejected *metav1.Condition, phases []Phase[V]) ([]Phase[V], error) {
	if rejected == nil {
		return phases, nil
	}
	flags, running, err := RunningFlags(ctx, live, c.Deployment)
	switch {
	case err != nil:
		return nil, err
	case !running:
		rejected.Message += ". No " + c.Kind + " is created until then"
		return phases[:c.Phase], nil
	}
	annotations, err := c.runningAnnotations(ctx, live)
	if err != nil {
		return nil, err
	}
	rejected.Message += ". The " + c.Name + " keeps its last settings until then"
	*c.Args, *c.Annotations = flags, annotations
	return phases, nil
}

// runningAnnotations returns the annotations of the ServiceAccount that depend on the
// settings of the component.
func (c Component) runningAnnotations(ctx context.Context, live client.Reader) (map[string]string, error) {
	var account corev1.ServiceAccount
	if err := live.Get(ctx, c.Account, &account); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("get the annotations of %s: %w", c.Account, err)
	}
	maps.DeleteFunc(account.Annotations, func(key, _ string) bool { return !slices.Contains(c.Keys, key) })
	return account.Annotations, nil
}

// RunningFlags returns the flags of a Deployment's first container, and false when
// the Deployment does not exist.
func RunningFlags(ctx context.Context, live client.Reader, deployment client.ObjectKey) ([]string, bool, error) {
	var d appsv1.Deployment
	if err := live.Get(ctx, deployment, &d); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return nil, false, nil
		}
		return nil, false, fmt.Errorf("get the settings of %s: %w", deployment, err)
	}
	var flags []string
	for _, container := range d.Spec.Template.Spec.Containers[:min(1, len(d.Spec.Template.Spec.Containers))] {
		flags = slices.Clone(container.Args)
	}
	return slices.DeleteFunc(flags, func(arg string) bool {
		// The manifests set these for every role.
		return !strings.HasPrefix(arg, "--") || strings.HasPrefix(arg, "--bind-address=")
	}), true, nil
}
