package addon

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/excerpt"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// eventSource names the agent in events.
const eventSource = "addon-registration"

// recorder records events: renewals on the managed cluster, about the Secret, and
// failures on the hub, about the add-on.
type recorder struct {
	hub, managed events.EventRecorder
}

func newRecorder(hub ctrl.Manager, managed cluster.Cluster) recorder {
	return recorder{hub: hub.GetEventRecorder(eventSource), managed: managed.GetEventRecorder(eventSource)}
}

func (t recorder) renewed(it *item, issued *driver.Issued, need credential.Need) {
	about := &corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: it.secret.Namespace, Name: it.secret.Name}
	t.managed.Eventf(about, nil, corev1.EventTypeNormal, it.driver.Report().Event, "Obtain",
		"stored a new %[2]s credential of add-on %[1]s, valid until %[3]s: %[4]s", it.addOn, it.label(), issued.Validity.Until(), clip(need.Message))
}

func (t recorder) warning(addOn *addonv1beta1.ManagedClusterAddOn, it *item, why driver.Waiting) {
	t.hub.Eventf(addOn, nil, corev1.EventTypeWarning, why.Reason, "Obtain",
		"cannot obtain a new %s credential: %s", it.label(), clip(why.Message))
}

// clip shortens a message for an event, whose note is limited to 1 KiB.
func clip(sentence string) string { return excerpt.Of(sentence, 700) }
