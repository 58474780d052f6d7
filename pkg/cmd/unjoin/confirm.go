package unjoin

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
)

// confirmLeaving asks before the agent is removed, and with --hub-context the
// cluster on the hub as well.
func (o *options) confirmLeaving(agent install.Agent) error {
	name, server := o.env.Kube.Target()
	question := fmt.Sprintf("Detach cluster %s and remove its agent from context %s (%s)?", o.cluster, name, server)
	if o.side == spoke {
		question = fmt.Sprintf("Remove the agent of cluster %s from context %s (%s)? The hub is not informed.", o.cluster, name, server)
	}
	if n := len(agent.Works); n > 0 {
		question += fmt.Sprintf(" The workloads of %d ManifestWorks stay behind, orphaned.", n)
	}
	if o.admin != (cli.Context{}) {
		name, _ := o.env.Kube.Of(o.admin).Target()
		question += fmt.Sprintf(" The hub (context %s) deletes the cluster.", name)
	}
	return o.env.Confirm(o.yes, question)
}

// confirmDetaching asks before the cluster is deleted on the hub, and says what
// goes with it.
func (o *options) confirmDetaching(ctx context.Context, c client.Client, admin cli.Context) error {
	cluster := &clusterv1.ManagedCluster{}
	if err := c.Get(ctx, client.ObjectKey{Name: o.cluster}, cluster); err != nil {
		return err
	}
	works, err := count(ctx, c, o.cluster, schema.GroupVersionKind{Group: workv1.GroupName, Version: "v1", Kind: "ManifestWorkList"}, "ManifestWorks")
	if err != nil {
		return err
	}
	addOns, err := count(ctx, c, o.cluster, schema.GroupVersionKind{Group: addonv1beta1.GroupName, Version: "v1beta1", Kind: "ManagedClusterAddOnList"}, "add-ons")
	if err != nil {
		return err
	}
	state := "that never joined"
	switch conditions := cluster.Status.Conditions; {
	case apimeta.IsStatusConditionTrue(conditions, clusterv1.ManagedClusterConditionAvailable):
		state = "that is available"
	case apimeta.IsStatusConditionTrue(conditions, clusterv1.ManagedClusterConditionJoined):
		state = "that is not available"
	}
	name, server := o.env.Kube.Of(admin).Target()
	return o.env.Confirm(o.yes, fmt.Sprintf("Delete cluster %s, %s, from the hub (context %s, %s)? Its credentials, %s and %s are lost.",
		o.cluster, state, name, server, works, addOns))
}

// count says how many objects of a kind are in a namespace. A hub may not serve
// them, and the user may not be allowed to see them.
func count(ctx context.Context, c client.Client, namespace string, list schema.GroupVersionKind, noun string) (string, error) {
	objects := &metav1.PartialObjectMetadataList{}
	objects.SetGroupVersionKind(list)
	err := c.List(ctx, objects, client.InNamespace(namespace))
	switch {
	case apierrors.IsForbidden(err):
		return "all " + noun, nil
	case err != nil && !install.Gone(err):
		return "", err
	}
	return fmt.Sprintf("%d %s", len(objects.Items), noun), nil
}
