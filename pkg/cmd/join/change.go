package join

import (
	"context"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pause"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/approval"
)

// changeInterval is how often the hub is asked whether a change was made.
const changeInterval = time.Second

// changesDriver reports whether the cluster registers with another driver, as far as the
// hub knows. Only an administrator of the hub can change that.
func (o *options) changesDriver(hub *hub) bool {
	d := &o.registration.drivers
	if hub.cluster == nil || d.kind == "" {
		return false
	}
	by := d.identifier()
	if by == nil {
		return o.env.Drivers.Announced(hub.cluster) != nil
	}
	id, err := by.AnnouncedID(hub.cluster)
	return err != nil || id != by.ID(d.settings)
}

// awaitChange waits until an administrator has changed how the hub knows the
// cluster. What the agent reports before is about its earlier credential.
func (o *options) awaitChange(ctx context.Context, hub *hub, name string) error {
	if !o.changesDriver(hub) || hub.client == nil {
		return nil
	}
	return o.awaitOnHub(ctx, hub, name, "Waiting for the hub to change how the cluster registers", func(cluster *clusterv1.ManagedCluster, err error) bool {
		if err == nil {
			hub.cluster = cluster
		}
		return !o.changesDriver(hub)
	})
}

// awaitAvailable waits until the hub shows the cluster as joined and available: what
// follows in a script looks there. A hub that cannot be reached from here, or that the
// bootstrap token may not ask any more, is not waited for.
func (o *options) awaitAvailable(ctx context.Context, hub *hub, name string) error {
	if hub.client == nil {
		return nil
	}
	return o.awaitOnHub(ctx, hub, name, "Waiting for the hub to show the cluster as available", func(cluster *clusterv1.ManagedCluster, err error) bool {
		return apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) ||
			apimeta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1.ManagedClusterConditionJoined) &&
				apimeta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1.ManagedClusterConditionAvailable)
	})
}

// awaitRequest waits until the hub has the ManagedCluster, and the request for the agent's
// key; an agent without a key requests nothing.
func (o *options) awaitRequest(ctx context.Context, hub *hub, name, key string) error {
	if hub.client == nil {
		return nil
	}
	return o.awaitOnHub(ctx, hub, name, "Waiting for the request on the hub", func(_ *clusterv1.ManagedCluster, err error) bool {
		if err != nil || key == "" {
			return err == nil
		}
		requests, err := approval.Requests(ctx, hub.client, name)
		return err == nil && slices.ContainsFunc(requests, func(r approval.Request) bool { return r.Fingerprint == key })
	})
}

// awaitOnHub waits until done holds of the cluster on the hub, which is empty if it could
// not be read.
func (o *options) awaitOnHub(ctx context.Context, hub *hub, name, title string, done func(*clusterv1.ManagedCluster, error) bool) error {
	return o.env.Progress().Step(ctx, title, func(ctx context.Context, _ cli.Say) error {
		for !done(hub.read(ctx, name)) {
			if !pause.For(ctx, o.env.Clock, changeInterval) {
				return ctx.Err()
			}
		}
		return nil
	})
}

// register is how the cluster is to register, for the command that accepts it; the
// zero value unless that is a change.
func (o *options) register(hub *hub) approval.Register {
	d := &o.registration.drivers
	if !o.changesDriver(hub) {
		return approval.Register{}
	}
	to := approval.Register{Driver: d.kind}
	if by := d.identifier(); by != nil {
		to.ID = by.ID(d.settings)
	}
	return to
}

// acceptArgs are the arguments of the command that accepts the cluster on the hub,
// with the key that is to be compared if there is one.
func (o *options) acceptArgs(hub *hub, name, key string) []string {
	args := []string{"accept", "--clusters", name}
	to := o.register(hub)
	if to.Driver != "" {
		args = append(args, "--registration-auth", string(to.Driver))
	}
	if to.ID != "" {
		args = append(args, "--"+o.registration.drivers.identifier().Words().IDFlag, to.ID)
	}
	if key != "" {
		args = append(args, "--fingerprint", key)
	}
	return args
}
