package addon_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/cachereads"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controllers"
)

// observe runs the add-on manager and records what it reads from its cache.
func (e *env) observe(t *testing.T) *cachereads.Record {
	t.Helper()
	reads := &cachereads.Record{}
	controllers.Start(t, e.connection(t, nil), manager.Options{Cache: addon.CacheOptions(), NewClient: reads.NewClient}, e.setup)
	return reads
}

// scans are the recorded lists of everything of a kind that clusters have more of.
func scans(reads *cachereads.Record) []string {
	var found []string
	for kind, n := range reads.Scans() {
		// ClusterManagementAddOns are as many as there are kinds of add-ons.
		if !strings.HasSuffix(kind, "ClusterManagementAddOnList") {
			found = append(found, fmt.Sprintf("%d x %s", n, kind))
		}
	}
	slices.Sort(found)
	return found
}

// TestOneAddOnCostsNoLookAtAll: add-ons that come, are made from a template, ask for
// certificates, and go cost no look at what all clusters have, nor at all decisions.
func TestOneAddOnCostsNoLookAtAll(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	for _, name := range []string{"c1", "c2"} {
		e.cluster(t, name)
	}
	e.template(t, "a", fmt.Sprintf(kubeClient, ""), agentManifest)
	e.create(t, fleet("a", templated), fleet("placed", placed("some")))
	reads := e.observe(t)
	e.create(t, addOn("c1", "a"))
	e.awaitWork(t, deployWork("c1", "a", 0), "is made", is)
	e.decide(t, "some", "c1", "c2")
	e.awaitInstalled(t, "placed", "c1", "c2")
	e.decide(t, "some", "c2")
	e.awaitInstalled(t, "placed", "c2")
	e.delete(t, addOn("c1", "a"))
	e.awaitInstalled(t, "a")
	e.create(t, addOn("c2", "a"))
	e.awaitWork(t, deployWork("c2", "a", 0), "is made", is) // By now the other was looked at.
	if found := scans(reads); len(found) > 0 {
		t.Errorf("lists of everything: %v", found)
	}
}

// TestAClusterDoesNotConcernTheAddOnsOfOthers: that a placement chooses one more cluster,
// and that a rollout makes progress, is no reason to look at add-ons that stay the same.
func TestAClusterDoesNotConcernTheAddOnsOfOthers(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	for _, name := range []string{"c1", "c2", "c3"} {
		e.cluster(t, name)
	}
	reads := e.observe(t)
	e.decide(t, "some", "c1", "c2")
	e.create(t, fleet("placed", placed("some")))
	for _, name := range []string{"c1", "c2"} {
		e.awaitConfigured(t, name, "placed", metav1.ConditionTrue, names.ReasonConfigurationsConfigured)
	}
	e.awaitProgress(t, "placed", "2 of 2 clusters have the configurations")
	e.marker(t, "before")

	reads.Forget()
	e.decide(t, "some", "c1", "c2", "c3")
	e.awaitConfigured(t, "c3", "placed", metav1.ConditionTrue, names.ReasonConfigurationsConfigured)
	e.awaitProgress(t, "placed", "3 of 3 clusters have the configurations")
	e.marker(t, "after")
	for _, name := range []string{"c1", "c2"} {
		if key := cachereads.Key(addOn(name, "placed")); reads.Gets()[key] > 0 {
			t.Errorf("%s was looked at", key)
		}
	}
}

// awaitProgress waits for what a ClusterManagementAddOn says of its only placement.
func (e *env) awaitProgress(t *testing.T, name, message string) {
	t.Helper()
	cma := fleet(name)
	eventually(t, name+" says "+message, func(ctx context.Context) (bool, error) {
		e.get(ctx, t, cma)
		for _, p := range cma.Status.InstallProgressions {
			for _, c := range p.Conditions {
				if c.Message == message {
					return true, nil
				}
			}
		}
		return false, nil
	}, func() any { return cma.Status })
}

// marker waits until the add-on manager has done what is behind everything so far.
func (e *env) marker(t *testing.T, name string) {
	t.Helper()
	e.create(t, fleet(name), addOn("c1", name))
	e.awaitConfigured(t, "c1", name, metav1.ConditionTrue, names.ReasonConfigurationsConfigured)
}
