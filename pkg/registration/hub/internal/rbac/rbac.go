package rbac

import (
	"context"
	"fmt"
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	rbacac "k8s.io/client-go/applyconfigurations/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/mergepatch"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// Labels returns the labels of the objects of a cluster, including extra. Objects
// that all clusters share belong to the cluster "".
func Labels(cluster string, extra map[string]string) map[string]string {
	labels := maps.Clone(extra)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[names.LabelClusterName] = cluster
	return labels
}

// HasLabels reports whether live carries every wanted label.
func HasLabels(live client.Object, want map[string]string) bool {
	return includes(live.GetLabels(), want)
}

func includes(have, want map[string]string) bool {
	for key, value := range want {
		if got, ok := have[key]; !ok || got != value {
			return false
		}
	}
	return true
}

// Rule allows verbs on one resource of one API group.
func Rule(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}

// Named restricts a rule to one object.
func Named(rule rbacv1.PolicyRule, name string) rbacv1.PolicyRule {
	rule.ResourceNames = []string{name}
	return rule
}

// Role is a wanted ClusterRole.
type Role struct {
	Name   string
	Labels map[string]string
	Rules  []rbacv1.PolicyRule
}

// Binding is a wanted ClusterRoleBinding or, with a namespace, RoleBinding to
// a ClusterRole.
type Binding struct {
	Namespace   string
	Name        string
	Labels      map[string]string
	Annotations map[string]string
	Finalizers  []string
	Role        string
	Subjects    []rbacv1.Subject
}

// EnsureClusterRole creates or repairs a ClusterRole.
func EnsureClusterRole(ctx context.Context, c client.Client, owner client.FieldOwner, want Role) error {
	var live rbacv1.ClusterRole
	err := c.Get(ctx, client.ObjectKey{Name: want.Name}, &live)
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return err
	case HasLabels(&live, want.Labels) && equality.Semantic.DeepEqual(live.Rules, want.Rules):
		return nil
	}
	config := rbacac.ClusterRole(want.Name).WithLabels(want.Labels)
	for _, rule := range want.Rules {
		config.WithRules(rbacac.PolicyRule().
			WithAPIGroups(rule.APIGroups...).WithResources(rule.Resources...).
			WithResourceNames(rule.ResourceNames...).WithVerbs(rule.Verbs...))
	}
	return apply(ctx, c, owner, config, "cluster role "+want.Name)
}

// EnsureBinding creates or repairs a binding. It replaces a binding to another role,
// because that field is immutable, and one that is being deleted.
func EnsureBinding(ctx context.Context, c client.Client, owner client.FieldOwner, want Binding) error {
	live, err := ReadBinding(ctx, c, want.Namespace, want.Name)
	if err != nil {
		return err
	}
	switch {
	case live == nil:
	case live.replaced(want):
		if err := DeleteBinding(ctx, c, c, owner, want.Namespace, want.Name); err != nil {
			return err
		}
	case live.is(want):
		return nil
	}
	return apply(ctx, c, owner, config(want), "binding "+want.Name)
}

// HasBinding reports whether reader has a binding that EnsureBinding would not change.
func HasBinding(ctx context.Context, reader client.Reader, want Binding) (bool, error) {
	live, err := ReadBinding(ctx, reader, want.Namespace, want.Name)
	return live != nil && !live.replaced(want) && live.is(want), err
}

// DeleteBinding deletes a binding that reader has, together with its finalizers.
func DeleteBinding(ctx context.Context, c client.Client, reader client.Reader, owner client.FieldOwner, namespace, name string) error {
	live, err := ReadBinding(ctx, reader, namespace, name)
	if err != nil || live == nil {
		return err
	}
	if len(live.Object.GetFinalizers()) > 0 {
		if err := SetFinalizers(ctx, c, owner, live.Object, nil); err != nil {
			return err
		}
	}
	return remove(ctx, c, live.Object)
}

// RetireBinding deletes a binding that reader has; it stays until its finalizers are
// removed.
func RetireBinding(ctx context.Context, c client.Client, reader client.Reader, namespace, name string) error {
	live, err := ReadBinding(ctx, reader, namespace, name)
	if err != nil || live == nil {
		return err
	}
	return remove(ctx, c, live.Object)
}

// DeleteClusterRole deletes a ClusterRole that reader has.
func DeleteClusterRole(ctx context.Context, c client.Client, reader client.Reader, name string) error {
	var live rbacv1.ClusterRole
	if err := reader.Get(ctx, client.ObjectKey{Name: name}, &live); err != nil {
		return client.IgnoreNotFound(err)
	}
	return remove(ctx, c, &live)
}

// SetFinalizers replaces the finalizers of an object that was just read, if it still
// exists.
func SetFinalizers(ctx context.Context, c client.Client, owner client.FieldOwner, object client.Object, finalizers []string) error {
	err := mergepatch.Write(ctx, c, owner, object, mergepatch.Fields{"metadata": {"finalizers": finalizers}})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("finalizers of %s in namespace %s: %w", object.GetName(), object.GetNamespace(), err)
	}
	return nil
}

func remove(ctx context.Context, c client.Client, object client.Object) error {
	if object.GetDeletionTimestamp() != nil {
		return nil
	}
	if err := client.IgnoreNotFound(c.Delete(ctx, object)); err != nil {
		return fmt.Errorf("deletion of %s: %w", object.GetName(), err)
	}
	return nil
}

// LiveBinding has the fields that ClusterRoleBindings and RoleBindings share.
type LiveBinding struct {
	Object   client.Object
	Role     rbacv1.RoleRef
	Subjects []rbacv1.Subject
}

// To reports whether the binding is to a ClusterRole.
func (l *LiveBinding) To(role string) bool {
	return l.Role == rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}
}

// replaced reports whether the binding cannot be updated to the wanted one.
func (l *LiveBinding) replaced(want Binding) bool {
	return l.Object.GetDeletionTimestamp() != nil || !l.To(want.Role)
}

// is reports whether the binding has all wanted fields.
func (l *LiveBinding) is(want Binding) bool {
	return HasLabels(l.Object, want.Labels) && includes(l.Object.GetAnnotations(), want.Annotations) &&
		slices.Equal(l.Subjects, want.Subjects) && containsAll(l.Object.GetFinalizers(), want.Finalizers)
}

// ReadBinding returns nil when there is no such binding.
func ReadBinding(ctx context.Context, reader client.Reader, namespace, name string) (*LiveBinding, error) {
	var b LiveBinding
	var err error
	key := client.ObjectKey{Namespace: namespace, Name: name}
	if namespace == "" {
		var live rbacv1.ClusterRoleBinding
		err = reader.Get(ctx, key, &live)
		b = LiveBinding{Object: &live, Role: live.RoleRef, Subjects: live.Subjects}
	} else {
		var live rbacv1.RoleBinding
		err = reader.Get(ctx, key, &live)
		b = LiveBinding{Object: &live, Role: live.RoleRef, Subjects: live.Subjects}
	}
	if err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return &b, nil
}

func config(want Binding) runtime.ApplyConfiguration {
	ref := rbacac.RoleRef().WithAPIGroup(rbacv1.GroupName).WithKind("ClusterRole").WithName(want.Role)
	subjects := make([]*rbacac.SubjectApplyConfiguration, len(want.Subjects))
	for i, s := range want.Subjects {
		subjects[i] = rbacac.Subject().WithKind(s.Kind).WithAPIGroup(s.APIGroup).WithName(s.Name)
	}
	if want.Namespace == "" {
		return rbacac.ClusterRoleBinding(want.Name).WithLabels(want.Labels).
			WithAnnotations(want.Annotations).WithFinalizers(want.Finalizers...).WithRoleRef(ref).WithSubjects(subjects...)
	}
	return rbacac.RoleBinding(want.Name, want.Namespace).WithLabels(want.Labels).
		WithAnnotations(want.Annotations).WithFinalizers(want.Finalizers...).WithRoleRef(ref).WithSubjects(subjects...)
}

func apply(ctx context.Context, c client.Client, owner client.FieldOwner, config runtime.ApplyConfiguration, what string) error {
	if err := c.Apply(ctx, config, owner, client.ForceOwnership); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

func containsAll(have, want []string) bool {
	return !slices.ContainsFunc(want, func(w string) bool { return !slices.Contains(have, w) })
}
