package agent

import (
	"cmp"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/agent/strategy"
)

// inServedVersion calls do for a recorded object. If the cluster does not serve the version
// any more in which it is recorded, inServedVersion changes resource to one that it serves,
// and calls do again. It returns an error that the object was not found only if that is
// proved.
func (a *agent) inServedVersion(resource *workv1.AppliedManifestResourceMeta, do func() error) error {
	err := do()
	if !strategy.Unserved(err) {
		return err
	}
	gr := schema.GroupResource{Group: resource.Group, Resource: resource.Resource}
	version, errServed := a.servedVersion(gr)
	switch {
	case errServed != nil:
		return fmt.Errorf("find out in which version %s are served: %w", gr, errServed)
	case version == "":
		return apierrors.NewNotFound(gr, resource.Name) // A kind that is not served has no objects.
	case version == resource.Version:
		return err
	}
	resource.Version = version
	return do()
}

// servedVersion returns the version in which the cluster serves a resource, the preferred one
// if there are several; empty if in none.
func (a *agent) servedVersion(gr schema.GroupResource) (string, error) {
	groups, err := a.managed.discovery.ServerGroups()
	if err != nil {
		return "", err
	}
	at := slices.IndexFunc(groups.Groups, func(g metav1.APIGroup) bool { return g.Name == gr.Group })
	if at < 0 {
		return "", nil
	}
	group := groups.Groups[at]
	slices.SortStableFunc(group.Versions, func(a, b metav1.GroupVersionForDiscovery) int {
		preferred := func(v metav1.GroupVersionForDiscovery) int {
			if v.GroupVersion == group.PreferredVersion.GroupVersion {
				return 0
			}
			return 1
		}
		return cmp.Compare(preferred(a), preferred(b))
	})
	for _, v := range group.Versions {
		resources, err := a.managed.discovery.ServerResourcesForGroupVersion(v.GroupVersion)
		if err != nil {
			return "", err
		}
		if slices.ContainsFunc(resources.APIResources, func(r metav1.APIResource) bool { return r.Name == gr.Resource }) {
			return v.Version, nil
		}
	}
	return "", nil
}
