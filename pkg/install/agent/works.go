package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "open-cluster-management.io/api/operator/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/excerpt"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/lookup"
)

// AppliedWork is a ManifestWork of the hub that the agent applied to its cluster.
type AppliedWork struct {
	// Name is the name of the ManifestWork.
	Name string
	// Resources are the objects that it owns on the cluster, as RESOURCE NAMESPACE/NAME.
	Resources []string

	// Object is the agent's record of it.
	Object workv1.AppliedManifestWork
}

// String names the work and what it owns.
func (w AppliedWork) String() string {
	if len(w.Resources) == 0 {
		return w.Name + " (owns nothing)"
	}
	return fmt.Sprintf("%s (owns %s)", w.Name, w.Owned())
}

// Owned names the first few resources that the work owns.
func (w AppliedWork) Owned() string { return excerpt.List(w.Resources, ", ") }

// WorksRemainError says that ManifestWorks of the hub own resources on the cluster.
type WorksRemainError struct{ Works []AppliedWork }

// Error implements error.
func (e *WorksRemainError) Error() string {
	list := make([]string, len(e.Works))
	for i, work := range e.Works {
		list[i] = work.Name
	}
	return "ManifestWorks of the hub are still on this cluster: " + excerpt.List(list, ", ")
}

// Works returns the ManifestWorks that the agent of a Klusterlet applied. Those of other
// agents, which other Klusterlets install, are not among them. Without a Klusterlet they
// are those that no agent is responsible for any more.
func Works(ctx context.Context, c client.Reader, own *operatorv1.Klusterlet, all []operatorv1.Klusterlet) ([]AppliedWork, error) {
	var list workv1.AppliedManifestWorkList
	if err := c.List(ctx, &list); err != nil {
		if lookup.Gone(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("AppliedManifestWorks: %w", err)
	}
	var works []AppliedWork
	for i := range list.Items {
		ofOther := slices.ContainsFunc(all, func(k operatorv1.Klusterlet) bool {
			return (own == nil || k.UID != own.UID) && list.Items[i].Spec.AgentID == string(k.UID)
		})
		if !ofOther {
			works = append(works, appliedWork(list.Items[i]))
		}
	}
	return works, nil
}

func appliedWork(object workv1.AppliedManifestWork) AppliedWork {
	work := AppliedWork{Name: object.Spec.ManifestWorkName, Object: object}
	for _, r := range object.Status.AppliedResources {
		resource := schema.GroupResource{Group: r.Group, Resource: r.Resource}.String()
		name := strings.TrimPrefix(r.Namespace+"/"+r.Name, "/")
		work.Resources = append(work.Resources, resource+" "+name)
	}
	return work
}
