package agent_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installation"
)

const twoMaps = oneMap + `
---
apiVersion: v1
kind: ConfigMap
metadata: {name: two, namespace: NS}
data: {key: value}`

// testRemoval drops a manifest whose object a finalizer retains, and one whose object a
// user has replaced.
func testRemoval(t *testing.T, p *place) {
	t.Helper()
	p.start(t)
	work := p.create(t, "app", twoMaps+`
---
apiVersion: v1
kind: ConfigMap
metadata: {name: three, namespace: NS}`)
	p.reaches(t, work, "Applied=True", "Available=True")
	p.edit(t, "two", `{"metadata":{"finalizers":["example.com/stay"]}}`)
	p.change(t, work, func(w *workv1.ManifestWork) { w.Spec.Workload.Manifests = p.manifests(t, oneMap) })
	p.finds(t, "three", missing)
	p.finds(t, "two", func(c *corev1.ConfigMap) bool { return c.DeletionTimestamp != nil })
	p.records(t, work, "one", "two")
	p.holdsUp(t, work, workv1.WorkApplied, "ConfigMap "+p.cluster+"/two", "example.com/stay")
	p.edit(t, "two", `{"metadata":{"finalizers":null}}`)
	p.finds(t, "two", missing)
	p.records(t, work, "one")
	p.reaches(t, work, "Applied=True", "Available=True")
}

// holdsUp waits until a condition of the work names what holds a deletion up.
func (p *place) holdsUp(t *testing.T, work *workv1.ManifestWork, condition string, parts ...string) {
	t.Helper()
	await.Success(t, patience, fmt.Sprintf("%s names %v", condition, parts), func(ctx context.Context) error {
		if err := p.hub.Get(ctx, client.ObjectKeyFromObject(work), work); err != nil {
			return err
		}
		c := apimeta.FindStatusCondition(work.Status.Conditions, condition)
		if c == nil || c.Status != metav1.ConditionTrue || slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(c.Message, part) }) {
			return errors.New(show(work))
		}
		return nil
	})
}

// records waits until the AppliedManifestWork records exactly these ConfigMaps.
func (p *place) records(t *testing.T, work *workv1.ManifestWork, configMaps ...string) {
	t.Helper()
	await.Success(t, patience, fmt.Sprintf("%v are recorded", configMaps), func(ctx context.Context) error {
		applied, err := p.appliedOf(ctx, work)
		if err != nil || applied == nil {
			return errors.Join(err, errors.New("no AppliedManifestWork"))
		}
		var found []string
		for _, r := range applied.Status.AppliedResources {
			found = append(found, r.Name)
		}
		if fmt.Sprint(found) != fmt.Sprint(configMaps) {
			return fmt.Errorf("recorded: %v", found)
		}
		return nil
	})
}

// testTwoOwners moves an object from one work to another.
func testTwoOwners(t *testing.T, p *place) {
	t.Helper()
	p.start(t)
	first, second := p.create(t, "first", oneMap), p.create(t, "second", oneMap)
	p.reaches(t, first, "Applied=True", "Available=True")
	p.reaches(t, second, "Applied=True", "Available=True")
	before := p.finds(t, "one", func(c *corev1.ConfigMap) bool { return c != nil && len(c.OwnerReferences) == 2 })
	if err := p.hub.Delete(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	p.gone(t, first)
	p.finds(t, "one", func(c *corev1.ConfigMap) bool { return c.UID == before.UID && len(c.OwnerReferences) == 1 })
	if err := p.hub.Delete(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	p.gone(t, second)
	p.finds(t, "one", missing)
}

func testForeground(t *testing.T, p *place) {
	t.Helper()
	p.start(t)
	work := p.create(t, "app", twoMaps)
	p.reaches(t, work, "Applied=True", "Available=True")
	p.edit(t, "two", `{"metadata":{"finalizers":["example.com/stay"]}}`)
	if err := p.hub.Delete(t.Context(), work); err != nil {
		t.Fatal(err)
	}
	p.finds(t, "one", missing)
	p.reaches(t, work, "Deleting=True")
	p.holdsUp(t, work, workv1.WorkDeleting, "ConfigMap "+p.cluster+"/two", "example.com/stay")
	p.edit(t, "two", `{"metadata":{"finalizers":null}}`)
	p.gone(t, work)
	p.finds(t, "two", missing)
}

// testOrphan sets the option only when the work is deleted.
func testOrphan(t *testing.T, p *place) {
	t.Helper()
	stop := p.start(t)
	work := p.create(t, "app", oneMap)
	p.reaches(t, work, "Applied=True", "Available=True")
	before := p.finds(t, "one", exists)
	stop()
	p.change(t, work, func(w *workv1.ManifestWork) {
		w.Spec.DeleteOption = &workv1.DeleteOption{PropagationPolicy: workv1.DeletePropagationPolicyTypeOrphan}
	})
	if err := p.hub.Delete(t.Context(), work); err != nil {
		t.Fatal(err)
	}
	p.start(t)
	p.gone(t, work)
	p.finds(t, "one", func(c *corev1.ConfigMap) bool {
		return c != nil && c.UID == before.UID && len(c.OwnerReferences) == 0 && c.DeletionTimestamp == nil
	})
}

func testSelectivelyOrphan(t *testing.T, p *place) {
	t.Helper()
	p.start(t)
	work := p.create(t, "app", twoMaps)
	p.reaches(t, work, "Applied=True", "Available=True")
	p.change(t, work, func(w *workv1.ManifestWork) {
		w.Spec.DeleteOption = &workv1.DeleteOption{
			PropagationPolicy: workv1.DeletePropagationPolicyTypeSelectivelyOrphan,
			SelectivelyOrphan: &workv1.SelectivelyOrphan{OrphaningRules: []workv1.OrphaningRule{{Resource: "configmaps", Namespace: p.cluster, Name: "one"}}},
		}
	})
	p.finds(t, "one", func(c *corev1.ConfigMap) bool { return len(c.OwnerReferences) == 0 })
	if err := p.hub.Delete(t.Context(), work); err != nil {
		t.Fatal(err)
	}
	p.gone(t, work)
	p.finds(t, "two", missing)
	p.finds(t, "one", exists)
}

// testAppliedDeleted deletes the AppliedManifestWork of a work that stays.
func testAppliedDeleted(t *testing.T, p *place) {
	t.Helper()
	p.start(t)
	work := p.create(t, "app", oneMap)
	p.reaches(t, work, "Applied=True", "Available=True")
	before := p.finds(t, "one", exists)
	applied, err := p.appliedOf(t.Context(), work)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.managed.Delete(t.Context(), applied); err != nil {
		t.Fatal(err)
	}
	p.finds(t, "one", func(c *corev1.ConfigMap) bool { return c != nil && c.UID != before.UID })
	p.records(t, work, "one")
}

// testEviction has AppliedManifestWorks of a hub that is not ours any more, one of them
// for longer than the grace period, and one of another agent.
func testEviction(t *testing.T, p *place) {
	t.Helper()
	for _, left := range []struct {
		name, agent string
		begin       time.Duration
	}{{"mine", p.config.AgentID, -2 * p.config.EvictionGracePeriod}, {"recent", p.config.AgentID, 0}, {"theirs", "another-agent", 0}} {
		hash := names.HubHash("https://" + left.name + "." + p.cluster + ".example.com")
		applied := &workv1.AppliedManifestWork{
			ObjectMeta: metav1.ObjectMeta{Name: names.AppliedManifestWork(hash, left.name), Finalizers: []string{names.FinalizerAppliedManifestWork}},
			Spec:       workv1.AppliedManifestWorkSpec{HubHash: hash, AgentID: left.agent, ManifestWorkName: left.name},
		}
		installation.Create(t, p.managed, applied)
		if left.begin != 0 {
			applied.Status.EvictionStartTime = &metav1.Time{Time: p.config.Clock.Now().Add(left.begin)}
			if err := p.managed.Status().Update(t.Context(), applied); err != nil {
				t.Fatal(err)
			}
		}
	}
	get := func(ctx context.Context, name string) (*workv1.AppliedManifestWork, error) {
		a := &workv1.AppliedManifestWork{}
		hash := names.HubHash("https://" + name + "." + p.cluster + ".example.com")
		return a, p.managed.Get(ctx, client.ObjectKey{Name: names.AppliedManifestWork(hash, name)}, a)
	}
	p.start(t)
	work := p.create(t, "app", oneMap)
	p.reaches(t, work, "Applied=True", "Available=True")
	await.Success(t, patience, "the eviction", func(ctx context.Context) error {
		if a, err := get(ctx, "mine"); client.IgnoreNotFound(err) != nil || err == nil {
			return fmt.Errorf("%w: eviction began %v", errors.Join(err, errors.New("it exists")), a.Status.EvictionStartTime)
		}
		return nil
	})
	await.Success(t, patience, "the beginning of an eviction", func(ctx context.Context) error {
		a, err := get(ctx, "recent")
		if err == nil && (a.Status.EvictionStartTime == nil || a.DeletionTimestamp != nil) {
			err = fmt.Errorf("eviction began %v, deleted %v", a.Status.EvictionStartTime, a.DeletionTimestamp)
		}
		return err
	})
	if a, err := get(t.Context(), "theirs"); err != nil || a.Status.EvictionStartTime != nil {
		t.Errorf("that of the other agent: %+v, %v", a.Status, err)
	}
	p.finds(t, "one", exists)
}

// testReplaced has a user replace an object, and then delete what was applied on a cluster
// that has no hub.
func testReplaced(t *testing.T, p *place) {
	t.Helper()
	stop := p.start(t)
	work := p.create(t, "app", twoMaps)
	p.reaches(t, work, "Applied=True", "Available=True")
	before := p.finds(t, "one", exists)
	stop()
	if err := p.managed.Delete(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	after := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: p.cluster, Name: "one"}}
	installation.Create(t, p.managed, after)
	applied, err := p.appliedOf(t.Context(), work)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.managed.Delete(t.Context(), applied); err != nil {
		t.Fatal(err)
	}
	p.config.HubKubeconfig += ".missing"
	p.start(t)
	await.Success(t, patience, "the AppliedManifestWork is gone", func(ctx context.Context) error {
		applied, err := p.appliedOf(ctx, work)
		if err == nil && applied != nil {
			err = errors.New("it exists")
		}
		return err
	})
	p.finds(t, "two", missing)
	p.finds(t, "one", func(c *corev1.ConfigMap) bool { return c != nil && c.UID == after.UID && c.DeletionTimestamp == nil })
}
