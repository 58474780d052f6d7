package pass

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// Component is what takes the settings of a resource, and would not start with
// some of them.
type Component struct {
	// Name and Kind name it in conditions: the registration controller, which is
	// a controller.
	Name, Kind string
	// Deployment runs it.
	Deployment client.ObjectKey
	// Phase is the index of the first step that takes its settings.
	Phase int
	// Args are the flags that it is rendered with.
	Args *[]string
	// Account is its ServiceAccount, and Annotations those that it is rendered with.
	Account     client.ObjectKey
	Annotations *map[string]string
}

// KeepSettings has a component go on with its last good settings, instead of being
// replaced by one that crashes: it gets the flags that it runs with, and the AWS role
// without which they would not work. One that does not run is not created. The
// phases that remain are returned; refused is about the setting, and says what
// follows from it. live reads from the API server: what a cache shows late would be
// kept instead of what runs, or taken away.
func KeepSettings[V any](ctx context.Context, live client.Reader, c Component, refused *metav1.Condition, phases []Phase[V]) ([]Phase[V], error) {
	flags, running, err := RunningFlags(ctx, live, c.Deployment)
	switch {
	case err != nil:
		return nil, err
	case !running:
		refused.Message += ". No " + c.Kind + " is created until then"
		return phases[:c.Phase], nil
	}
	role, err := runningRole(ctx, live, c.Account)
	if err != nil {
		return nil, err
	}
	refused.Message += ". The " + c.Name + " keeps its last settings until then"
	*c.Args, *c.Annotations = flags, role
	return phases, nil
}

// runningRole returns the annotation with the AWS role that a ServiceAccount's pods
// have, nil if they have none.
func runningRole(ctx context.Context, live client.Reader, key client.ObjectKey) (map[string]string, error) {
	var account corev1.ServiceAccount
	if err := live.Get(ctx, key, &account); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("the AWS role that %s has: %w", key, err)
	}
	role := account.Annotations[names.AnnotationAWSRole]
	if role == "" {
		return nil, nil
	}
	return map[string]string{names.AnnotationAWSRole: role}, nil
}

// RunningFlags returns the flags that a Deployment runs with, and false when
// there is no such Deployment.
func RunningFlags(ctx context.Context, live client.Reader, deployment client.ObjectKey) ([]string, bool, error) {
	var d appsv1.Deployment
	if err := live.Get(ctx, deployment, &d); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return nil, false, nil
		}
		return nil, false, fmt.Errorf("the settings that %s runs with: %w", deployment, err)
	}
	var flags []string
	for _, container := range d.Spec.Template.Spec.Containers[:min(1, len(d.Spec.Template.Spec.Containers))] {
		flags = slices.Clone(container.Args)
	}
	return slices.DeleteFunc(flags, func(arg string) bool {
		// What the manifests give to every role.
		return !strings.HasPrefix(arg, "--") || strings.HasPrefix(arg, "--bind-address=")
	}), true, nil
}
