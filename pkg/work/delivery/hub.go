package delivery

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apply"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/excerpt"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/printable"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/report"
)

// FieldManager owns what the commands write to ManifestWorks.
const FieldManager = "kubectl-ocm"

// Hub is the hub that ManifestWorks are delivered through.
type Hub struct {
	Client client.WithWatch
	// Clock paces the waits. The default is the real clock.
	Clock clock.Clock
}

// Progress reports what a wait is waiting for on a cluster.
type Progress func(cluster, message string)

// Copies returns the copies of a work on clusters, and the clusters without one.
func (h Hub) Copies(ctx context.Context, name string, clusters []string) (found []workv1.ManifestWork, missing []string, err error) {
	for _, cluster := range clusters {
		var work workv1.ManifestWork
		err := h.Client.Get(ctx, client.ObjectKey{Namespace: cluster, Name: name}, &work)
		switch {
		case apierrors.IsNotFound(err):
			missing = append(missing, cluster)
		case err != nil:
			return nil, nil, fmt.Errorf("ManifestWork %s on %s: %w", name, cluster, err)
		default:
			found = append(found, work)
		}
	}
	return found, missing, nil
}

// Unmet returns what a wait that ended still waited for: the first works and their reasons.
func Unmet(err error) string {
	waited, ok := errors.AsType[*apply.WaitError](err)
	if !ok {
		return ""
	}
	var list []string
	for _, unmet := range waited.Unmet {
		list = append(list, unmet.Object.Namespace+": "+printable.Line(unmet.Message))
	}
	return excerpt.List(list, "; ")
}

// errMalformed is of an object that is no ManifestWork, which an API server never sends.
var errMalformed = errors.New("it is no ManifestWork")

// Await waits until the copies of a work have reached a stage, or until ctx ends.
// Only a copy that is gone ends the wait early: agents retry everything else.
func (h Hub) Await(ctx context.Context, name string, clusters []string, stage report.Stage, progress Progress) error {
	return h.wait(ctx, name, clusters, progress, func(work *workv1.ManifestWork) apply.Result {
		w := report.Describe(work)
		return apply.Result{Done: w.Reached(stage), Message: w.Reason}
	})
}

// wait waits until a check of every copy of a work is done.
func (h Hub) wait(ctx context.Context, name string, clusters []string, progress Progress, check func(*workv1.ManifestWork) apply.Result) error {
	waiter := &apply.Waiter{Client: h.Client, Clock: h.Clock}
	if progress != nil {
		waiter.Progress = func(object apply.Ref, message string) { progress(object.Namespace, message) }
	}
	targets := make([]apply.Target, len(clusters))
	for i, cluster := range clusters {
		targets[i] = apply.Target{Object: empty(cluster, name), Check: func(obj *unstructured.Unstructured) apply.Result {
			if obj == nil {
				return apply.Result{Failed: true, Message: "was deleted"}
			}
			work, err := decode(obj)
			if err != nil {
				return apply.Result{Failed: true, Message: err.Error()}
			}
			return check(work)
		}}
	}
	return waiter.Wait(ctx, targets...)
}

func decode(obj *unstructured.Unstructured) (*workv1.ManifestWork, error) {
	work := &workv1.ManifestWork{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, work); err != nil {
		return nil, fmt.Errorf("%w: %w", errMalformed, err)
	}
	return work, nil
}

// empty returns a copy of a work that has a name only.
func empty(cluster, name string) *workv1.ManifestWork {
	work := &workv1.ManifestWork{}
	work.Namespace, work.Name = cluster, name
	return work
}
