package operand

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apply"
)

// Status is the part of a resource's status that an operator writes. The
// statuses of ClusterManager and Klusterlet have the same fields.
type Status struct {
	ObservedGeneration int64                            `json:"observedGeneration,omitempty"`
	Conditions         []metav1.Condition               `json:"conditions,omitempty"`
	Generations        []operatorv1.GenerationStatus    `json:"generations,omitempty"`
	RelatedResources   []operatorv1.RelatedResourceMeta `json:"relatedResources,omitempty"`
}

// Set adds or replaces a condition.
func (s *Status) Set(c metav1.Condition) {
	if old := apimeta.FindStatusCondition(s.Conditions, c.Type); old != nil {
		*old = c
		return
	}
	s.Conditions = append(s.Conditions, c)
}

// writeStatus applies status to the resource called name whose status, as read, is
// live. Conditions of live that status does not have stay with their writers. A
// resource that is gone needs no status.
func (o *Operator) writeStatus(ctx context.Context, name string, live, status Status) error {
	changed := live.ObservedGeneration != status.ObservedGeneration ||
		!equality.Semantic.DeepEqual(live.Generations, status.Generations) ||
		!equality.Semantic.DeepEqual(live.RelatedResources, status.RelatedResources)
	merged := append([]metav1.Condition(nil), live.Conditions...)
	for i := range status.Conditions {
		c := &status.Conditions[i]
		c.ObservedGeneration = status.ObservedGeneration
		c.LastTransitionTime = metav1.NewTime(o.Clock.Now())
		if apimeta.SetStatusCondition(&merged, *c) {
			changed = true
		}
		// SetStatusCondition retains the transition time of an unchanged status.
		c.LastTransitionTime = apimeta.FindStatusCondition(merged, c.Type).LastTransitionTime
	}
	if !changed {
		return nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&status)
	if err != nil {
		return fmt.Errorf("encode status: %w", err)
	}
	obj := &unstructured.Unstructured{Object: map[string]any{"status": content}}
	obj.SetGroupVersionKind(o.Kind)
	obj.SetName(name)
	err = o.Client.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(obj),
		client.FieldOwner(o.FieldManager), client.ForceOwnership)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("write status of %s %s: %w", o.Kind.Kind, name, err)
	}
	return nil
}

// related returns the applied objects, and the Deployments among them with their
// generations, as a status lists them. It omits kinds that the API server does not
// serve.
func related(mapper apimeta.RESTMapper, changes apply.ChangeSet) ([]operatorv1.RelatedResourceMeta, []operatorv1.GenerationStatus) {
	var related []operatorv1.RelatedResourceMeta
	var generations []operatorv1.GenerationStatus
	for _, change := range changes {
		mapping, err := mapper.RESTMapping(change.Object.Kind.GroupKind(), change.Object.Kind.Version)
		if err != nil {
			continue
		}
		related = append(related, operatorv1.RelatedResourceMeta{
			Group: mapping.Resource.Group, Version: mapping.Resource.Version, Resource: mapping.Resource.Resource,
			Namespace: change.Object.Namespace, Name: change.Object.Name,
		})
		if change.Object.Kind.Kind == "Deployment" {
			generations = append(generations, operatorv1.GenerationStatus{
				Group: mapping.Resource.Group, Version: mapping.Resource.Version, Resource: mapping.Resource.Resource,
				Namespace: change.Object.Namespace, Name: change.Object.Name, LastGeneration: change.Generation,
			})
		}
	}
	return related, generations
}
