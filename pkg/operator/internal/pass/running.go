package pass

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// RunningFlags returns the flags that a Deployment runs with, and false when
// there is no such Deployment. An operator keeps them while its resource has a
// setting that the component would refuse: a component that runs then goes on
// with its last good settings, instead of being replaced by one that crashes.
func RunningFlags(ctx context.Context, reader client.Reader, deployment client.ObjectKey) ([]string, bool, error) {
	var d appsv1.Deployment
	if err := reader.Get(ctx, deployment, &d); err != nil {
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
