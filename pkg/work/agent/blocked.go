package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/agent/inventory"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/agent/strategy"
)

const (
	// blockedAfter is how long deletions take before it is reported what holds them up, and
	// how soon that is looked at again.
	blockedAfter = 5 * time.Second
	// mostBlocked is how many objects are named, and mostLookedAt how many are looked at
	// for that: of thousands, most are deleted while it is asked what holds them up.
	mostBlocked  = 3
	mostLookedAt = 20
)

// blocked says which of the objects that are to be deleted are held up, and by what; empty
// if none are, or not for long.
func (r *remover) blocked(ctx context.Context, pending []workv1.AppliedManifestResourceMeta) string {
	var found []string
	looked := 0
	for _, resource := range pending {
		key := keyOf(resource)
		if _, known := r.inventory.Object(key); !known && r.inventory.State(key.Resource) == inventory.Watched {
			continue // It is gone.
		}
		if looked++; len(found) == mostBlocked || looked > mostLookedAt {
			break
		}
		if text := r.blockedOne(ctx, resource); text != "" {
			found = append(found, text)
		}
	}
	if len(found) == 0 {
		return ""
	}
	text := "waiting for the deletion of " + strings.Join(found, ", of ")
	if len(found) == mostBlocked && len(pending) > mostBlocked {
		text += " and of others"
	}
	return text
}

func (r *remover) blockedOne(ctx context.Context, resource workv1.AppliedManifestResourceMeta) string {
	name := resource.Resource
	if kind, err := r.managed.mapper.KindFor(keyOf(resource).Resource); err == nil {
		name = kind.Kind
	}
	name += " " + strings.TrimPrefix(resource.Namespace+"/"+resource.Name, "/")
	text := ""
	err := r.managed.inServedVersion(&resource, func() error {
		var err error
		text, err = r.holdUp(ctx, keyOf(resource), resource.UID)
		return err
	})
	switch {
	case err != nil && !strategy.Gone(err):
		return fmt.Sprintf("%s, which cannot be read: %v", name, err)
	case text == "":
		return ""
	}
	return name + text
}

// holdUp says since when an object is being deleted and what it waits for, or why it cannot
// be; empty if it is gone, another one, or not being deleted for long.
func (r *remover) holdUp(ctx context.Context, key inventory.Key, uid string) (string, error) {
	object, err := r.managed.objects(key).Get(ctx, key.Name, metav1.GetOptions{})
	if err != nil || string(object.UID) != uid {
		return "", err
	}
	since := object.DeletionTimestamp
	if since == nil {
		// A dry run is refused for the same reason as the deletion.
		err := r.managed.objects(key).Delete(ctx, key.Name, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}, Preconditions: &metav1.Preconditions{UID: &object.UID}})
		if err == nil || strategy.Gone(err) {
			return "", nil
		}
		return fmt.Sprintf(", which is refused: %v", err), nil
	}
	if r.clock.Since(since.Time) < blockedAfter {
		return "", nil
	}
	return fmt.Sprintf(" since %s: %s", since.UTC().Format(time.RFC3339), r.waitsFor(ctx, key, object)), nil
}

// waitsFor says what an object that is being deleted waits for.
func (r *remover) waitsFor(ctx context.Context, key inventory.Key, object *metav1.PartialObjectMetadata) string {
	if len(object.Finalizers) > 0 {
		return "its finalizers are " + strings.Join(object.Finalizers, ", ")
	}
	if key.Resource.GroupResource() == corev1.Resource("namespaces") {
		if why := r.namespaceWaitsFor(ctx, key); why != "" {
			return why
		}
	}
	return "its API server has not deleted it yet"
}

// namespaceWaitsFor returns the reason in the status of a namespace that is being deleted.
func (r *remover) namespaceWaitsFor(ctx context.Context, key inventory.Key) string {
	object, err := r.applier.Client.Resource(key.Resource).Get(ctx, key.Name, metav1.GetOptions{})
	if err != nil {
		return ""
	}
	namespace := &corev1.Namespace{}
	if runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, namespace) != nil {
		return ""
	}
	var why []string
	for _, c := range namespace.Status.Conditions {
		if c.Status == corev1.ConditionTrue && c.Message != "" {
			why = append(why, strings.TrimSuffix(c.Message, "."))
		}
	}
	slices.Sort(why)
	return strings.Join(why, "; ")
}
