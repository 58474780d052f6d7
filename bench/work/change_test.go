package work_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/scheme"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
)

// mostChange is the budget from the write of a work to its condition Applied.
const mostChange = time.Second

// changes is what changing works one after another showed.
type changes struct {
	median, p99 time.Duration
	requests    int
}

// changeAll changes one manifest of each work, each after the one before is Applied. The
// time of a change begins before the write on the hub, and ends when a watch shows the
// condition for the new generation.
func changeAll(b *testing.B, hub *controlplane.Own, works int) changes {
	b.Helper()
	admin, err := client.NewWithWatch(hub.Config(b), client.Options{Scheme: scheme.New()})
	if err != nil {
		b.Fatal(err)
	}
	var list workv1.ManifestWorkList
	if err := admin.List(b.Context(), &list, client.InNamespace(cluster)); err != nil {
		b.Fatal(err)
	}
	options := &client.ListOptions{Namespace: cluster, Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}}
	reports, err := admin.Watch(b.Context(), &workv1.ManifestWorkList{}, options)
	if err != nil {
		b.Fatal(err)
	}
	defer reports.Stop()
	times := make([]time.Duration, works)
	for i := range times {
		times[i] = change(b, admin, &list.Items[i], reports)
	}
	slices.Sort(times)
	return changes{median: times[works/2], p99: times[works*99/100]}
}

// change changes one work, and returns how long the agent took to report it Applied.
func change(b *testing.B, admin client.Client, work *workv1.ManifestWork, reports watch.Interface) time.Duration {
	b.Helper()
	first := &work.Spec.Workload.Manifests[0].RawExtension
	first.Raw = []byte(strings.Replace(string(first.Raw), `"value"`, `"changed"`, 1))
	before, start := work.Generation, now.Now()
	if err := admin.Update(b.Context(), work); err != nil {
		b.Fatal(err)
	}
	if work.Generation == before {
		b.Fatalf("%s was not changed", work.Name)
	}
	ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
	defer cancel()
	for {
		select {
		case event, ok := <-reports.ResultChan():
			if !ok {
				b.Fatal("the watch of the works ended")
			}
			if found, ok := event.Object.(*workv1.ManifestWork); ok && found.Name == work.Name && appliedSince(found, work.Generation) {
				return now.Since(start)
			}
		case <-ctx.Done():
			b.Fatalf("%s is not Applied", work.Name)
		}
	}
}

// appliedSince reports whether a work is Applied at a generation.
func appliedSince(work *workv1.ManifestWork, generation int64) bool {
	c := apimeta.FindStatusCondition(work.Status.Conditions, workv1.WorkApplied)
	return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == generation
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
