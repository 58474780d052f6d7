package hub_test

import (
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// TestADenialFromBeforeTheGateStays: turning ManagedClusterAutoApproval on
// accepts the clusters that nobody decided about, not those that a person denied.
func TestADenialFromBeforeTheGateStays(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	stop := e.start(t, defaults(), nil)
	e.cluster(t, "denied", acceptedFromTheStart)
	e.awaitAccepted(t, "denied")
	e.deny(t, "denied")
	stop()

	cfg := defaults()
	cfg.AutoApprove = true
	e.start(t, cfg, nil)
	e.cluster(t, "waiting")
	e.awaitAccepted(t, "waiting") // By now the other was looked at, and is again:
	e.patch(t, "denied", `{"metadata":{"annotations":{"`+names.AnnotationForceDetach+`":"false"}}}`)
	e.cluster(t, "marker")
	e.awaitAccepted(t, "marker")
	if cluster := e.get(t.Context(), t, "denied"); cluster.Spec.HubAcceptsClient || cluster.Annotations[names.AnnotationAutoAccepted] != "" {
		t.Errorf("the denied cluster was accepted: %+v, %v", cluster.Spec, cluster.Annotations)
	}
}
