package grant

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// Hand grants and revokes for a person who has credentials of the outside service
// that the hub does not have. It works between the records: the controller makes
// one before anything is granted, as always, and lets a cluster go when none is
// left.
type Hand struct {
	// Client reads from the API server, and writes.
	Client client.Client
	// Namespace is where the records are.
	Namespace string
	// Granter has the person's credentials.
	Granter driver.Granter
	// Name is what the outside service calls the person. It is kept in the record.
	Name string
}

// Settle revokes what a cluster was granted and is not to have, and makes what it
// is to have: what its driver plans for it if the hub accepts it, and nothing else.
// It can be called again after any failure. Waiting is a sentence about what is
// missing for it, empty for nothing.
func (h *Hand) Settle(ctx context.Context, cluster *clusterv1.ManagedCluster) (waiting string, err error) {
	wanted, err := h.wanted(cluster)
	if err != nil {
		return "", err
	}
	known, others, err := sorted(ctx, h.Client, h.Namespace, cluster.Name, wanted)
	if err != nil {
		return "", err
	}
	for _, old := range others {
		if err := h.revoke(ctx, old); err != nil {
			return "", err
		}
	}
	switch {
	case wanted == nil:
		return "", nil
	case known == nil:
		return "the hub controller to record what it grants", nil
	}
	progress, err := h.Granter.Grant(ctx, known.grant)
	if err != nil || progress.Waiting != "" {
		return progress.Waiting, err
	}
	return "", h.sign(ctx, *known)
}

// wanted returns the record that a cluster is to have, nil for none.
func (h *Hand) wanted(cluster *clusterv1.ManagedCluster) (*record, error) {
	if !cluster.Spec.HubAcceptsClient {
		return nil, nil
	}
	plan, err := h.Granter.Plan(cluster)
	if plan == nil || err != nil {
		return nil, err
	}
	wanted, err := newRecord(h.Namespace, h.Granter.Type(), *plan)
	return &wanted, err
}

// revoke removes what a record is about, and then the record.
func (h *Hand) revoke(ctx context.Context, old record) error {
	if old.driver != h.Granter.Type() {
		return nil // The controller reports what it cannot revoke.
	}
	if err := h.Granter.Revoke(ctx, old.grant); err != nil {
		return err
	}
	return remove(ctx, h.Client, old)
}

// sign says in a record who made its grant, which has the controller look at it.
func (h *Hand) sign(ctx context.Context, known record) error {
	if known.madeBy() == h.Name {
		return nil
	}
	signed := known.object.DeepCopy()
	if signed.Annotations == nil {
		signed.Annotations = map[string]string{}
	}
	signed.Annotations[names.AnnotationGrantedBy] = h.Name
	if err := h.Client.Patch(ctx, signed, client.MergeFrom(known.object)); err != nil {
		return fmt.Errorf("record of the grant to cluster %s: %w", known.grant.Cluster, err)
	}
	return nil
}
