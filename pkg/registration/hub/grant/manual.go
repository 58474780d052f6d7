package grant

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// Manual grants and revokes with the credentials of a user for the external service,
// which the hub lacks. The controller still creates the record before a grant, and
// removes its finalizer when no record remains.
type Manual struct {
	// Client reads from the API server, and writes.
	Client client.Client
	// Namespace has the records.
	Namespace string
	// Granter has the credentials of the user.
	Granter driver.Granter
	// Name is the name of the user at the external service. The record stores it.
	Name string
}

// Reconcile grants what the driver plans for a cluster that the hub accepts, and
// revokes every other grant of the cluster. It is idempotent. Waiting describes the
// missing precondition, empty for none.
func (m *Manual) Reconcile(ctx context.Context, cluster *clusterv1.ManagedCluster) (waiting string, err error) {
	wanted, err := m.wanted(cluster)
	if err != nil {
		return "", err
	}
	known, others, err := partition(ctx, store{Reader: m.Client}, m.Namespace, cluster.Name, wanted)
	if err != nil {
		return "", err
	}
	for _, old := range others {
		if err := m.revoke(ctx, old); err != nil {
			return "", err
		}
	}
	switch {
	case wanted == nil:
		return "", nil
	case known == nil:
		return "the hub controller to record what it grants", nil
	}
	progress, err := m.Granter.Grant(ctx, known.grant)
	if err != nil || progress.Waiting != "" {
		return progress.Waiting, err
	}
	return "", m.recordGrantor(ctx, *known)
}

// wanted returns the record of the grant that is planned for a cluster, nil for none.
func (m *Manual) wanted(cluster *clusterv1.ManagedCluster) (*record, error) {
	if !cluster.Spec.HubAcceptsClient {
		return nil, nil
	}
	plan, err := m.Granter.Plan(cluster)
	if plan == nil || err != nil {
		return nil, err
	}
	wanted, err := newRecord(m.Namespace, m.Granter.Type(), *plan)
	return &wanted, err
}

// revoke revokes the grant of a record, and then deletes the record.
func (m *Manual) revoke(ctx context.Context, old record) error {
	if old.driver != m.Granter.Type() {
		return nil // The controller reports what it cannot revoke.
	}
	if err := m.Granter.Revoke(ctx, old.grant); err != nil {
		return err
	}
	return remove(ctx, m.Client, old)
}

// recordGrantor records the user who made a grant, which triggers the controller.
func (m *Manual) recordGrantor(ctx context.Context, known record) error {
	if known.grantor() == m.Name {
		return nil
	}
	signed := known.object.DeepCopy()
	if signed.Annotations == nil {
		signed.Annotations = map[string]string{}
	}
	signed.Annotations[names.AnnotationGrantedBy] = m.Name
	if err := m.Client.Patch(ctx, signed, client.MergeFrom(known.object)); err != nil {
		return fmt.Errorf("record of the grant to cluster %s: %w", known.grant.Cluster, err)
	}
	return nil
}
