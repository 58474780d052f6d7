package event

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/excerpt"
)

// longest is the maximum length of a note, below that of the API server.
const longest = 1000

// Recorder writes events of one controller.
type Recorder struct {
	// Events is the recorder of the manager.
	Events events.EventRecorder
}

// Normal records an expected operation.
func (r Recorder) Normal(cluster *clusterv1.ManagedCluster, reason, action, note string) {
	r.write(cluster, corev1.EventTypeNormal, reason, action, note)
}

// Warning records a problem that may need an action of the user.
func (r Recorder) Warning(cluster *clusterv1.ManagedCluster, reason, action, note string) {
	r.write(cluster, corev1.EventTypeWarning, reason, action, note)
}

func (r Recorder) write(cluster *clusterv1.ManagedCluster, kind, reason, action, note string) {
	// Without a namespace, as the object has none: otherwise kubectl describe does not find
	// the event, which the API server has in the namespace default.
	regarding := &corev1.ObjectReference{
		APIVersion: clusterv1.GroupVersion.String(),
		Kind:       "ManagedCluster",
		Name:       cluster.Name,
		UID:        cluster.UID,
	}
	r.Events.Eventf(regarding, nil, kind, reason, action, "%s", excerpt.Of(note, longest))
}
