package unjoin

import (
	"context"
	"fmt"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/agent"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// confirmLeaving asks before the agent is removed, and with --hub-context the
// cluster on the hub as well.
func (o *options) confirmLeaving(installed agent.Installed) error {
	name, server := o.env.Kube.Target()
	question := fmt.Sprintf("Detach cluster %s and remove its agent from context %s (%s)?", o.cluster, name, server)
	if o.side == managed {
		question = fmt.Sprintf("Remove the agent of cluster %s from context %s (%s)? The hub is not informed.", o.cluster, name, server)
	}
	question += o.loss(installed)
	if o.admin != (cli.Context{}) {
		name, _ := o.env.Kube.Of(o.admin).Target()
		question += fmt.Sprintf(" The hub (context %s) deletes the cluster.", name)
	}
	question += o.purged()
	return o.env.Confirm(o.yes, question)
}

// sayWorks lists the ManifestWorks on the cluster and what they own.
func (o *options) sayWorks(installed agent.Installed) {
	for _, work := range installed.Works {
		o.env.Say("  ManifestWork %v", work)
	}
}

// loss lists the ManifestWorks, and says what becomes of the resources that they own.
func (o *options) loss(installed agent.Installed) string {
	if len(installed.Works) == 0 {
		return ""
	}
	o.sayWorks(installed)
	resources := 0
	for _, work := range installed.Works {
		resources += len(work.Resources)
	}
	fate := "stay, orphaned"
	if o.works == install.DeleteResources {
		fate = "are deleted"
	}
	return fmt.Sprintf(" The %d resources of %d ManifestWorks %s.", resources, len(installed.Works), fate)
}

// confirmDetaching asks before the cluster is deleted on the hub, and says what
// goes with it.
func (o *options) confirmDetaching(ctx context.Context, c client.Client, admin cli.Context) error {
	cluster := &clusterv1.ManagedCluster{}
	if err := c.Get(ctx, client.ObjectKey{Name: o.cluster}, cluster); err != nil {
		return err
	}
	works, err := fleet.CountWorks(ctx, c, o.cluster)
	if err != nil {
		return err
	}
	addOns, err := fleet.CountAddOns(ctx, c, o.cluster)
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
	return o.env.Confirm(o.yes, fmt.Sprintf("Delete cluster %s, %s, from the hub (context %s, %s)? Its credentials, %s and %s are lost.%s%s",
		o.cluster, state, name, server, works, addOns, o.deployed(cluster, works), o.purged()))
}

// purged says what --purge deletes besides.
func (o *options) purged() string {
	if !o.all {
		return ""
	}
	return " What otherwise stays is deleted: the namespace of the cluster on the hub, with all that is in it, and the CRDs of the agent on the managed cluster."
}

// deployed says what becomes on the managed cluster of what ManifestWorks deployed.
func (o *options) deployed(cluster *clusterv1.ManagedCluster, works string) string {
	detached := cluster.Annotations[names.AnnotationLeft] == "true" && !cluster.Spec.HubAcceptsClient
	switch {
	case works == fleet.NoWorks:
		return ""
	case detached:
		return " The cluster has detached itself, and its agent is gone."
	case o.force:
		return " What the ManifestWorks deployed stays on the managed cluster."
	}
	return " The agent deletes first what the ManifestWorks deployed."
}
