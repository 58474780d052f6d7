package delivery

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/manifest"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/report"
)

// Delivery is a work that is to be on clusters.
type Delivery struct {
	Name      string
	Manifests []workv1.Manifest
	// Executor is the ServiceAccount of the managed cluster that must be allowed to
	// apply the manifests; without a name an existing executor stays.
	Executor client.ObjectKey
	// Overwrite replaces the manifests of copies that exist with other ones.
	Overwrite bool
}

// Action is the change of the copy of a work on a cluster.
type Action string

// The actions.
const (
	Create    Action = "created"
	Change    Action = "configured"
	Unchanged Action = "unchanged"
	Remove    Action = "deleted"
)

// Step is the change of one copy.
type Step struct {
	Action Action
	// Work is the copy as it is to be, or the one to delete.
	Work *workv1.ManifestWork
}

// InvalidError says why a work must not be created.
type InvalidError struct{ Problems []string }

// Error implements error.
func (e *InvalidError) Error() string { return strings.Join(e.Problems, "\n") }

// ExistsError says that clusters have a work of that name with other manifests.
type ExistsError struct {
	Name     string
	Clusters []string
}

// Error implements error.
func (e *ExistsError) Error() string {
	return fmt.Sprintf("ManifestWork %s exists with other manifests on %s", e.Name, strings.Join(e.Clusters, ", "))
}

// OwnedError says that another object on the hub owns the copy of a work.
type OwnedError struct{ Name, Cluster, Owner string }

// Error implements error.
func (e *OwnedError) Error() string {
	return fmt.Sprintf("ManifestWork %s on %s belongs to %s, which writes it", e.Name, e.Cluster, e.Owner)
}

// Validate returns an *InvalidError about a work that no cluster could apply.
func (d Delivery) Validate() error {
	problems := manifest.Validate(d.copyFor(""))
	if len(problems) == 0 {
		return nil
	}
	invalid := &InvalidError{}
	for _, problem := range problems {
		invalid.Problems = append(invalid.Problems, problem.Error())
	}
	return invalid
}

// Render returns the copies for clusters that have none, without a look at the hub.
func (d Delivery) Render(clusters []string) []client.Object {
	copies := make([]client.Object, len(clusters))
	for i, cluster := range clusters {
		copies[i] = d.copyFor(cluster)
	}
	return copies
}

// copyFor returns the copy for a cluster that has none.
func (d Delivery) copyFor(cluster string) *workv1.ManifestWork {
	work := empty(cluster, d.Name)
	d.fill(work)
	return work
}

// fill sets what is delivered and leaves the rest of the spec as it is.
func (d Delivery) fill(work *workv1.ManifestWork) {
	work.Spec.Workload.Manifests = d.Manifests
	if d.Executor.Name != "" {
		work.Spec.Executor = &workv1.ManifestWorkExecutor{Subject: workv1.ManifestWorkExecutorSubject{
			Type:           workv1.ExecutorSubjectTypeServiceAccount,
			ServiceAccount: &workv1.ManifestWorkSubjectServiceAccount{Namespace: d.Executor.Namespace, Name: d.Executor.Name},
		}}
	}
}

// Plan returns what has to change for every cluster of targets to have the work, and,
// when existing copies are overwritten, for no other to have it. It writes nothing.
func (h Hub) Plan(ctx context.Context, d Delivery, targets Targets) ([]Step, error) {
	var steps []Step
	exists := &ExistsError{Name: d.Name}
	for _, cluster := range targets.Clusters {
		step, err := h.planOne(ctx, d, cluster)
		if err != nil {
			return nil, err
		}
		if step.Action == Change && !d.Overwrite {
			exists.Clusters = append(exists.Clusters, cluster)
		}
		steps = append(steps, step)
	}
	if len(exists.Clusters) > 0 {
		return nil, exists
	}
	if d.Overwrite {
		removals, err := h.planRemovals(ctx, d.Name, targets.Left)
		return append(steps, removals...), err
	}
	return steps, nil
}

// planRemovals returns the deletions of copies that no other object owns.
func (h Hub) planRemovals(ctx context.Context, name string, clusters []string) ([]Step, error) {
	var steps []Step
	for _, cluster := range clusters {
		live := &workv1.ManifestWork{}
		err := h.Client.Get(ctx, client.ObjectKey{Namespace: cluster, Name: name}, live)
		switch {
		case client.IgnoreNotFound(err) != nil:
			return nil, fmt.Errorf("ManifestWork %s on %s: %w", name, cluster, err)
		case err == nil && report.Owner(live) == "":
			steps = append(steps, Step{Action: Remove, Work: live})
		}
	}
	return steps, nil
}

func (h Hub) planOne(ctx context.Context, d Delivery, cluster string) (Step, error) {
	live := &workv1.ManifestWork{}
	err := h.Client.Get(ctx, client.ObjectKey{Namespace: cluster, Name: d.Name}, live)
	if apierrors.IsNotFound(err) {
		return Step{Action: Create, Work: d.copyFor(cluster)}, nil
	}
	if err != nil {
		return Step{}, fmt.Errorf("ManifestWork %s on %s: %w", d.Name, cluster, err)
	}
	want := live.DeepCopy()
	d.fill(want)
	switch {
	case same(live, want):
		return Step{Action: Unchanged, Work: live}, nil
	case report.Owner(live) != "":
		return Step{}, &OwnedError{Name: d.Name, Cluster: cluster, Owner: report.Owner(live)}
	}
	return Step{Action: Change, Work: want}, nil
}

// same reports whether two copies have the same manifests, however they are encoded,
// and the same executor.
func same(a, b *workv1.ManifestWork) bool {
	if len(a.Spec.Workload.Manifests) != len(b.Spec.Workload.Manifests) || !reflect.DeepEqual(a.Spec.Executor, b.Spec.Executor) {
		return false
	}
	for i := range a.Spec.Workload.Manifests {
		var one, other any
		if json.Unmarshal(a.Spec.Workload.Manifests[i].Raw, &one) != nil ||
			json.Unmarshal(b.Spec.Workload.Manifests[i].Raw, &other) != nil || !reflect.DeepEqual(one, other) {
			return false
		}
	}
	return true
}

// Carry makes the change of one step, and returns what was done. For a copy that another
// client has changed since, such as its agent, the step is planned again.
func (h Hub) Carry(ctx context.Context, d Delivery, step Step) (Action, error) {
	planned := true
	err := retry.OnError(retry.DefaultRetry, contended, func() error {
		if !planned {
			var err error
			if step, err = h.planAgain(ctx, d, step); err != nil {
				return err
			}
		}
		planned = false
		return h.carry(ctx, step)
	})
	return step.Action, err
}

// contended reports whether another client has changed the object.
func contended(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }

// planAgain plans a step for what its cluster has now.
func (h Hub) planAgain(ctx context.Context, d Delivery, step Step) (Step, error) {
	targets := Targets{Clusters: []string{step.Work.Namespace}}
	if step.Action == Remove {
		targets = Targets{Left: targets.Clusters}
	}
	steps, err := h.Plan(ctx, d, targets)
	if err != nil || len(steps) == 0 {
		return Step{Action: Unchanged, Work: step.Work}, err
	}
	return steps[0], nil
}

func (h Hub) carry(ctx context.Context, step Step) error {
	var err error
	work := step.Work.DeepCopy()
	switch step.Action {
	case Create:
		err = h.Client.Create(ctx, work, client.FieldOwner(FieldManager))
	case Change:
		err = h.Client.Update(ctx, work, client.FieldOwner(FieldManager))
	case Remove:
		err = client.IgnoreNotFound(h.Client.Delete(ctx, work, client.Preconditions{UID: &work.UID, ResourceVersion: &work.ResourceVersion}))
	case Unchanged:
	}
	if err != nil {
		return fmt.Errorf("ManifestWork %s on %s: %w", work.Name, work.Namespace, err)
	}
	return nil
}
