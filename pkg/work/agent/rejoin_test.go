package agent_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installation"
)

// testRejoin has a cluster join again after its Klusterlet was lost, which gives the agent
// another id: first by the same address of the hub, then by another one, which is another
// hash of the hub.
func testRejoin(t *testing.T, p *place) {
	t.Helper()
	stop := p.start(t)
	kept, left := p.create(t, "kept", oneMap), p.create(t, "left", strings.ReplaceAll(oneMap, "name: one", "name: two"))
	p.reaches(t, kept, "Applied=True", "Available=True")
	p.reaches(t, left, "Applied=True", "Available=True")
	p.records(t, kept, "one")
	p.records(t, left, "two")
	before, recorded := p.finds(t, "one", exists), p.applied(t, kept)
	stop()
	if err := p.hub.Delete(t.Context(), left); err != nil {
		t.Fatal(err)
	}
	p.config.AgentID = "second-" + p.cluster
	stop = p.start(t)
	p.gone(t, left) // Only the new agent can finish what the earlier one began.
	p.finds(t, "two", missing)
	await.Success(t, patience, "the AppliedManifestWork has the new agent", func(ctx context.Context) error {
		applied, err := p.appliedOf(ctx, kept)
		if err == nil && (applied == nil || applied.UID != recorded.UID || applied.Spec.AgentID != p.config.AgentID) {
			err = fmt.Errorf("it is %+v", applied)
		}
		return err
	})
	untouched := func(c *corev1.ConfigMap) bool {
		return c != nil && c.UID == before.UID && c.ResourceVersion == before.ResourceVersion
	}
	p.finds(t, "one", untouched)
	stop()

	newGateway(t, p)
	p.config.AgentID = "third-" + p.cluster
	p.start(t)
	p.records(t, kept, "one")
	p.finds(t, "one", func(c *corev1.ConfigMap) bool {
		return c != nil && c.UID == before.UID && len(c.OwnerReferences) == 2 && c.Data["key"] == "value"
	})
	earlier := &workv1.AppliedManifestWork{}
	if err := p.managed.Get(t.Context(), client.ObjectKeyFromObject(recorded), earlier); err != nil {
		t.Fatal(err)
	}
	if earlier.UID != recorded.UID || earlier.DeletionTimestamp != nil || earlier.Status.EvictionStartTime != nil || len(earlier.Status.AppliedResources) != 1 {
		t.Errorf("the AppliedManifestWork of the earlier agent: %+v", earlier)
	}
	// The work takes away what it owns alone.
	if err := p.hub.Delete(t.Context(), kept); err != nil {
		t.Fatal(err)
	}
	p.gone(t, kept)
	p.finds(t, "one", func(c *corev1.ConfigMap) bool {
		return c != nil && c.UID == before.UID && c.DeletionTimestamp == nil && len(c.OwnerReferences) == 1
	})
}

// applied returns the AppliedManifestWork of a work, which there must be.
func (p *place) applied(t *testing.T, work *workv1.ManifestWork) *workv1.AppliedManifestWork {
	t.Helper()
	applied, err := p.appliedOf(t.Context(), work)
	if err != nil || applied == nil {
		t.Fatalf("no AppliedManifestWork: %v", err)
	}
	return applied
}

// testCopied has a user copy an applied object with its owner reference. The copy never
// was a part of the work, so a change of the work does not delete it.
func testCopied(t *testing.T, p *place) {
	t.Helper()
	p.start(t)
	work := p.create(t, "app", twoMaps)
	p.reaches(t, work, "Applied=True", "Available=True")
	original := p.finds(t, "one", exists)
	twin := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.cluster, Name: "copy", Labels: original.Labels, OwnerReferences: original.OwnerReferences},
		Data:       original.Data,
	}
	installation.Create(t, p.managed, twin)
	// The agent has heard of the copy when it hears of a later change.
	p.edit(t, "one", `{"data":{"key":"other"}}`)
	p.finds(t, "one", func(c *corev1.ConfigMap) bool { return c != nil && c.Data["key"] == "value" })
	p.change(t, work, func(w *workv1.ManifestWork) { w.Spec.Workload.Manifests = p.manifests(t, oneMap) })
	p.finds(t, "two", missing)
	p.reaches(t, work, "Applied=True", "Available=True")
	p.finds(t, "copy", func(c *corev1.ConfigMap) bool {
		return c != nil && c.UID == twin.UID && c.DeletionTimestamp == nil
	})
	p.records(t, work, "one")
}

// testUnrecorded has an object whose creation the agent did not live to record, and which
// leaves the work before the agent is back.
func testUnrecorded(t *testing.T, p *place) {
	t.Helper()
	stop := p.start(t)
	work := p.create(t, "app", twoMaps)
	p.reaches(t, work, "Applied=True", "Available=True")
	p.records(t, work, "one", "two")
	stop()
	applied := p.applied(t, work)
	applied.Status.AppliedResources = applied.Status.AppliedResources[:1]
	if err := p.managed.Status().Update(t.Context(), applied); err != nil {
		t.Fatal(err)
	}
	p.change(t, work, func(w *workv1.ManifestWork) { w.Spec.Workload.Manifests = p.manifests(t, oneMap) })
	p.start(t)
	p.finds(t, "two", missing)
	p.reaches(t, work, "Applied=True", "Available=True")
	p.records(t, work, "one")
	if err := p.managed.Get(t.Context(), client.ObjectKey{Namespace: p.cluster, Name: "two"}, &corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
		t.Error(err)
	}
}
