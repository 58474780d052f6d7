package fleet

import (
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apply"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/inventory"
)

// RefOf refers to a cluster of the inventory.
func RefOf(c inventory.Cluster) cli.Ref {
	ref := ClusterRef(c.Name, c.Created)
	ref.Labels = c.Labels
	return ref
}

// ClusterRef refers to a ManagedCluster in output.
func ClusterRef(name string, created time.Time) cli.Ref {
	return cli.RefTo("managedcluster.cluster.open-cluster-management.io", "", name, created)
}

// KlusterletRef refers to a Klusterlet in output.
func KlusterletRef(name string) cli.Ref {
	return cli.RefTo("klusterlet.operator.open-cluster-management.io", "", name, time.Time{})
}

// NoteApplied notes what an installer did.
func NoteApplied(changes *cli.Changes, set apply.ChangeSet) {
	for _, c := range set {
		changes.Note(cli.RefToKind(c.Object.Kind.GroupKind(), c.Object.Namespace, c.Object.Name), string(c.Action))
	}
}

// HubRef refers to the ClusterManager in output.
func HubRef(name string) cli.Ref {
	return cli.RefTo("clustermanager.operator.open-cluster-management.io", "", name, time.Time{})
}
