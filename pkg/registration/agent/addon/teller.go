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

// teller records events: what goes well on the managed cluster, about the
// Secret, and what fails on the hub, about the add-on.
type teller struct {
	hub, managed events.EventRecorder
}

func newTeller(hub ctrl.Manager, managed cluster.Cluster) teller {
	return teller{hub: hub.GetEventRecorder(eventSource), managed: managed.GetEventRecorder(eventSource)}
}

func (t teller) renewed(it *item, issued *driver.Issued, need credential.Need) {
	about := &corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: it.secret.Namespace, Name: it.secret.Name}
	t.managed.Eventf(about, nil, corev1.EventTypeNormal, it.driver.Report().Event, "Obtain",
		"add-on %s has a new credential for %s until %s, because: %s", it.addOn, it.label(), issued.Validity.Until(), clip(need.Message))
}

func (t teller) warning(addOn *addonv1beta1.ManagedClusterAddOn, it *item, why driver.Waiting) {
	t.hub.Eventf(addOn, nil, corev1.EventTypeWarning, why.Reason, "Obtain",
		"no new credential for %s: %s", it.label(), clip(why.Message))
}

// clip makes a sentence fit into an event, which may have 1 KiB.
func clip(sentence string) string { return excerpt.Of(sentence, 700) }
