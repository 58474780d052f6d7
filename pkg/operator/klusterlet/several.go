package klusterlet

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/operator/internal/operand"
)

// others is what the reconcile of a Klusterlet needs to know about the others.
type others struct {
	// names are the names of all other Klusterlets.
	names map[string]bool
	// owner is the Klusterlet that its namespace belongs to: itself or another.
	owner string
	// shares is true when it applies the shared objects of all Klusterlets: the CRDs
	// and the default add-on namespace.
	shares bool
}

// others evaluates all Klusterlets. The first of those that own their namespace
// applies what is shared.
func (r *Reconciler) others(ctx context.Context, k *operatorv1.Klusterlet) (others, error) {
	var list operatorv1.KlusterletList
	if err := r.Client.List(ctx, &list); err != nil {
		return others{}, fmt.Errorf("list Klusterlets: %w", err)
	}
	all := make([]*operatorv1.Klusterlet, len(list.Items))
	o := others{names: map[string]bool{}}
	for i := range list.Items {
		all[i] = &list.Items[i]
		if all[i].Name != k.Name {
			o.names[all[i].Name] = true
		}
	}
	operand.SortByPrecedence(all, names.FinalizerKlusterlet)
	owners, err := r.owners(ctx, all)
	if err != nil {
		return others{}, err
	}
	o.owner = owners[agentNamespace(k)]
	first := slices.IndexFunc(all, func(other *operatorv1.Klusterlet) bool {
		return owners[agentNamespace(other)] == other.Name && other.DeletionTimestamp.IsZero() && operand.UnsupportedMode(other.Spec.DeployOption.Mode) == nil
	})
	o.shares = first >= 0 && all[first].Name == k.Name
	return o, nil
}

// owners returns the Klusterlet that each agent namespace belongs to: the one that
// it was created for, or else the first.
func (r *Reconciler) owners(ctx context.Context, all []*operatorv1.Klusterlet) (map[string]string, error) {
	owners := map[string]string{}
	for _, k := range all {
		name := agentNamespace(k)
		if owners[name] != "" {
			continue
		}
		owners[name] = k.Name
		var namespace corev1.Namespace
		if err := r.Client.Get(ctx, client.ObjectKey{Name: name}, &namespace); client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("get namespace %s: %w", name, err)
		}
		made := slices.IndexFunc(all, func(other *operatorv1.Klusterlet) bool {
			return agentNamespace(other) == name && other.Name == namespace.Labels[names.LabelKlusterlet]
		})
		if made >= 0 {
			owners[name] = all[made].Name
		}
	}
	return owners, nil
}

// yield leaves the namespace to the Klusterlet that owns it. A further Klusterlet
// that an earlier release applied is deleted with the objects of its own.
func (r *Reconciler) yield(ctx context.Context, s *scope, owner string) error {
	if s.klusterlet.DeletionTimestamp.IsZero() {
		s.Reject(metav1.Condition{Reason: ReasonNamespaceInUse, Message: fmt.Sprintf(
			"The namespace %s belongs to the Klusterlet %s: set spec.namespace to another one", agentNamespace(s.klusterlet), owner)})
		return s.Report(ctx)
	}
	s.Values = manifests.Klusterlet{Name: s.klusterlet.Name, Namespace: agentNamespace(s.klusterlet)}
	for _, step := range []func(context.Context, *operand.Pass[manifests.Klusterlet]) error{r.removeFormerNamespaces, r.prune} {
		if err := step(ctx, &s.Pass); err != nil {
			return err
		}
	}
	return r.RemoveFinalizer(ctx, s.klusterlet)
}
