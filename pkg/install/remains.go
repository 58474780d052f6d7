package install

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/lookup"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// Remain is an object that a removal leaves, and why.
type Remain struct {
	Object client.Object
	Why    string
}

// sharedCRDs are the CRDs of a managed cluster that its operator leaves.
func sharedCRDs() []string {
	return []string{"appliedmanifestworks.work.open-cluster-management.io", "clusterclaims.cluster.open-cluster-management.io"}
}

// AgentRemains returns what stays on a managed cluster without its agent; nothing while
// there is an agent.
func (r *Runner) AgentRemains(ctx context.Context) ([]Remain, error) {
	agents, err := r.metadata(ctx, operatorKind("KlusterletList"))
	if err != nil || len(agents) > 0 {
		return nil, err
	}
	var remains []Remain
	for _, name := range sharedCRDs() {
		crd, err := lookup.Get(ctx, r.Client, client.ObjectKey{Name: name}, &apiextensionsv1.CustomResourceDefinition{})
		if err != nil {
			return nil, err
		}
		if crd != nil {
			remains = append(remains, Remain{crd, "objects of users and of other agents are deleted with it"})
		}
	}
	return remains, nil
}

// HubRemains returns what stays on a hub of a cluster that is gone, and of all clusters
// and the hub itself if cluster is empty.
func (r *Runner) HubRemains(ctx context.Context, cluster string) ([]Remain, error) {
	label := client.ListOption(client.HasLabels{names.LabelClusterName})
	if cluster != "" {
		label = client.MatchingLabels{names.LabelClusterName: cluster}
	}
	namespaces, err := r.metadata(ctx, corev1.SchemeGroupVersion.WithKind("NamespaceList"), label)
	if err != nil {
		return nil, err
	}
	var remains []Remain
	for _, namespace := range namespaces {
		if namespace.GetLabels()[names.LabelClusterName] != namespace.GetName() {
			continue // The hub did not make it: a cluster's namespace has its name.
		}
		remains = append(remains, Remain{namespace, "it can hold objects that the hub did not create"})
	}
	if cluster != "" {
		return remains, nil
	}
	for _, kind := range []string{"RoleList", "RoleBindingList", "ClusterRoleList", "ClusterRoleBindingList"} {
		granted, err := r.metadata(ctx, rbacv1.SchemeGroupVersion.WithKind(kind), client.HasLabels{names.LabelCreatedByClusterManager})
		if err != nil {
			return nil, err
		}
		for _, obj := range granted {
			remains = append(remains, Remain{obj, "the operator did not delete it"})
		}
	}
	agents, err := r.AgentRemains(ctx)
	return append(remains, agents...), err
}

func operatorKind(kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "operator.open-cluster-management.io", Version: "v1", Kind: kind}
}

// metadata lists objects that are not being deleted; none if their kind does not exist.
func (r *Runner) metadata(ctx context.Context, kind schema.GroupVersionKind, options ...client.ListOption) ([]client.Object, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind)
	if err := r.Client.List(ctx, list, options...); err != nil {
		if lookup.Absent(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("%s: %w", kind.Kind, err)
	}
	var objs []client.Object
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp.IsZero() {
			objs = append(objs, &list.Items[i])
		}
	}
	return objs, nil
}

// Purge deletes what stays, and waits until it is gone.
func (r *Runner) Purge(ctx context.Context, remains []Remain) error {
	if len(remains) == 0 {
		return nil
	}
	return r.Step(ctx, "Deleting what stays", func(ctx context.Context, say Say) error {
		var objs []client.Object
		for _, remain := range remains {
			say("%s", r.Describe(remain.Object))
			objs = append(objs, remain.Object)
		}
		if r.DryRun {
			_, err := r.Applier().Delete(ctx, objs...)
			return err
		}
		_, err := r.Applier().DeleteAndWait(ctx, r.Waiter(say), objs...)
		return err
	})
}
