package hub_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/drivertest"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/cachereads"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controllers"
)

// observe runs the hub's controllers and records what they read from their cache.
func (e *env) observe(t *testing.T, cfg hub.Config) *cachereads.Record {
	t.Helper()
	reads := &cachereads.Record{}
	o := options(t)
	o.NewClient = reads.NewClient
	controllers.Start(t, e.connection(t, nil), o, setup(cfg))
	return reads
}

// TestOneClusterCostsNoLookAtAll: a hub that accepts, denies and detaches a cluster does
// not go through what all clusters have.
func TestOneClusterCostsNoLookAtAll(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	reads := e.observe(t, approving(defaults()))
	for _, name := range []string{"first", "second"} {
		e.cluster(t, name, acceptedFromTheStart)
		e.awaitAccepted(t, name)
	}
	e.deny(t, "first")
	e.delete(t, "second")
	e.awaitGone(t, e.named("second"))
	if scans := reads.Scans(); len(scans) > 0 {
		t.Errorf("lists of everything: %v", scans)
	}
}

// TestOneGrantCostsNoLookAtAll is the same for what a driver grants, to clusters that
// share an identifier and to others.
func TestOneGrantCostsNoLookAtAll(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	reads := e.observe(t, granting(drivertest.NewOutside()))
	for _, name := range []string{"first", "second"} {
		e.bare(t, name, acceptedFromTheStart, registeredAs(name))
		e.awaitGranted(t, name)
	}
	e.bare(t, "third", acceptedFromTheStart, registeredAs("first"))
	e.awaitGrant(t, "third", metav1.ConditionFalse, names.ReasonIdentifierConflict)
	e.delete(t, "first")
	e.awaitGranted(t, "third")
	if scans := reads.Scans(); len(scans) > 0 {
		t.Errorf("lists of everything: %v", scans)
	}
}

// selections counts the lists of certificate requests by a label, for which the API
// server goes through those of all clusters.
type selections struct {
	next http.RoundTripper
	n    *atomic.Int64
}

// RoundTrip implements http.RoundTripper.
func (s selections) RoundTrip(req *http.Request) (*http.Response, error) {
	query := req.URL.Query()
	if strings.HasSuffix(req.URL.Path, "/certificatesigningrequests") && !query.Has("watch") &&
		strings.HasPrefix(query.Get("labelSelector"), names.LabelClusterName+"=") {
		s.n.Add(1)
	}
	return s.next.RoundTrip(req)
}

// TestAcceptanceSelectsNoRequests: the API server does not look for the request of a cluster
// that is accepted where the cache has it.
func TestAcceptanceSelectsNoRequests(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	clusters := []string{"c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8"}
	for _, name := range clusters {
		e.cluster(t, name)
	}
	var n atomic.Int64
	e.start(t, defaults(), func(next http.RoundTripper) http.RoundTripper { return selections{next: next, n: &n} })
	for _, name := range clusters {
		e.accept(t, name)
		e.awaitAccepted(t, name)
		e.awaitAgent(t, name, "a1")
	}
	if got := n.Load(); got > 0 {
		t.Errorf("%d selections for %d clusters", got, len(clusters))
	}
}
