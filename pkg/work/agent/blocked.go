package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/agent/strategy"
)

const (
	// blockedAfter is how long deletions take before it is reported what holds them up.
	blockedAfter = 5 * time.Second
	// mostBlocked is how many objects are named.
	mostBlocked = 3
)

// blocked says which of the objects that are to be deleted are held up, and by what; empty
// if none are, or not for long.
func (a *agent) blocked(ctx context.Context, pending []workv1.AppliedManifestResourceMeta) string {
	var found []string
	for i := range pending {
		if len(found) == mostBlocked {
			found = append(found, fmt.Sprintf("%d more objects", len(pending)-i))
			break
		}
		if text := a.blockedOne(ctx, pending[i]); text != "" {
			found = append(found, text)
		}
	}
	if len(found) == 0 {
		return ""
	}
	return "waiting for the deletion of " + strings.Join(found, ", of ")
}

func (a *agent) blockedOne(ctx context.Context, resource workv1.AppliedManifestResourceMeta) string {
	key := keyOf(resource)
	var objects dynamic.ResourceInterface = a.applier.Client.Resource(key.Resource)
	if key.Namespace != "" {
		objects = a.applier.Client.Resource(key.Resource).Namespace(key.Namespace)
	}
	name := strings.TrimPrefix(key.Namespace+"/"+key.Name, "/")
	object, err := objects.Get(ctx, key.Name, metav1.GetOptions{})
	switch {
	case strategy.Gone(err) || err == nil && string(object.GetUID()) != resource.UID:
		return ""
	case err != nil:
		return fmt.Sprintf("%s %s, which cannot be read: %v", resource.Resource, name, err)
	}
	name = object.GetKind() + " " + name
	since := object.GetDeletionTimestamp()
	if since == nil {
		// A dry run is refused for the same reason as the deletion.
		uid := object.GetUID()
		err := objects.Delete(ctx, key.Name, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}, Preconditions: &metav1.Preconditions{UID: &uid}})
		if err == nil || strategy.Gone(err) {
			return ""
		}
		return fmt.Sprintf("%s, which is refused: %v", name, err)
	}
	if a.config.Clock.Since(since.Time) < blockedAfter {
		return ""
	}
	return fmt.Sprintf("%s since %s: %s", name, since.UTC().Format(time.RFC3339), waitsFor(object))
}

// waitsFor says what an object that is being deleted waits for.
func waitsFor(object *unstructured.Unstructured) string {
	if finalizers := object.GetFinalizers(); len(finalizers) > 0 {
		return "its finalizers are " + strings.Join(finalizers, ", ")
	}
	namespace := &corev1.Namespace{}
	if object.GetKind() == "Namespace" && runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, namespace) == nil {
		var why []string
		for _, c := range namespace.Status.Conditions {
			if c.Status == corev1.ConditionTrue && c.Message != "" {
				why = append(why, strings.TrimSuffix(c.Message, "."))
			}
		}
		slices.Sort(why)
		if len(why) > 0 {
			return strings.Join(why, "; ")
		}
	}
	return "its API server has not deleted it yet"
}
