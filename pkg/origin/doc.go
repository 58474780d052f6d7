// Package origin recognises a hub or an agent of Open Cluster Management (OCM)
// that another product runs: clusteradm, a Helm chart, an OLM bundle or a
// distribution. Its resources, namespaces, Deployments and labels have the same
// names as ours, so installing over it would break it.
//
// It decides by the containers of Deployments, because names and labels are shared,
// and copies of our manifests may lack every annotation: a container that runs a role
// of our binary is ours, regardless of who applied it. It only reads, and never from a
// cache, whose selectors may hide objects.
package origin
