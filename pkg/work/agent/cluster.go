package agent

import (
	"cmp"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/agent/inventory"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/agent/strategy"
)

// cluster is the managed cluster. Client reads AppliedManifestWorks from a cache.
type cluster struct {
	client.Client

	live      client.Reader
	metadata  metadata.Interface
	mapper    apimeta.RESTMapper
	discovery discovery.DiscoveryInterface
}

// objects returns the client of the metadata of an object.
func (c *cluster) objects(key inventory.Key) metadata.ResourceInterface {
	if key.Namespace == "" {
		return c.metadata.Resource(key.Resource)
	}
	return c.metadata.Resource(key.Resource).Namespace(key.Namespace)
}

// inServedVersion calls do for a recorded object. If the cluster does not serve the version
// any more in which it is recorded, inServedVersion changes resource to one that it serves,
// and calls do again. It returns an error that the object was not found only if that is
// proved.
func (c *cluster) inServedVersion(resource *workv1.AppliedManifestResourceMeta, do func() error) error {
	err := do()
	if !strategy.Unserved(err) {
		return err
	}
	gr := schema.GroupResource{Group: resource.Group, Resource: resource.Resource}
	version, errServed := c.servedVersion(gr)
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
func (c *cluster) servedVersion(gr schema.GroupResource) (string, error) {
	groups, err := c.discovery.ServerGroups()
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
		resources, err := c.discovery.ServerResourcesForGroupVersion(v.GroupVersion)
		if err != nil {
			return "", err
		}
		if slices.ContainsFunc(resources.APIResources, func(r metav1.APIResource) bool { return r.Name == gr.Resource }) {
			return v.Version, nil
		}
	}
	return "", nil
}
