package tokeninfra

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	rbacac "k8s.io/client-go/applyconfigurations/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// errTaken is about a ServiceAccount that is not the add-on's to use.
var errTaken = errors.New("has another owner")

// labels returns the labels of every object made for an add-on.
func labels(addOn string) map[string]string {
	return map[string]string{names.LabelAddOnTokenName: addOn, names.LabelTokenInfrastructure: "true"}
}

// owns reports whether an object carries the labels of an add-on's token infrastructure.
func owns(addOn string, object client.Object) bool {
	for key, value := range labels(addOn) {
		if object.GetLabels()[key] != value {
			return false
		}
	}
	return true
}

func newAccount() *metav1.PartialObjectMetadata {
	account := &metav1.PartialObjectMetadata{}
	account.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ServiceAccount"))
	return account
}

// ensureAccount makes the ServiceAccount unless it is there, and returns its
// UID. It is never taken over: only made, or recognized by its labels.
func (r *Reconciler) ensureAccount(ctx context.Context, addOn types.NamespacedName, name string) (types.UID, error) {
	key := client.ObjectKey{Namespace: addOn.Namespace, Name: name}
	live := newAccount()
	err := r.Client.Get(ctx, key, live)
	if apierrors.IsNotFound(err) {
		made := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
			Namespace: key.Namespace, Name: key.Name, Labels: labels(addOn.Name),
		}}
		if err = r.Client.Create(ctx, made, Owner); err == nil {
			return made.UID, nil
		}
		if apierrors.IsAlreadyExists(err) { // The cache does not hold it, or not yet.
			err = r.Live.Get(ctx, key, live)
		}
	}
	if err != nil {
		return "", fmt.Errorf("service account %s: %w", key, err)
	}
	switch other := live.Labels[names.LabelAddOnTokenName]; {
	case !owns(addOn.Name, live) && live.Labels[names.LabelTokenInfrastructure] == "true" && other != "":
		return "", fmt.Errorf("ServiceAccount %s %w: it is the identity of add-on %s; rename one of the two add-ons", key, errTaken, other)
	case !owns(addOn.Name, live):
		return "", fmt.Errorf("ServiceAccount %s %w, because it lacks the labels %s=%s and %s=true; delete it, or set these labels to give the add-on its permissions",
			key, errTaken, names.LabelAddOnTokenName, addOn.Name, names.LabelTokenInfrastructure)
	case live.DeletionTimestamp != nil:
		return "", fmt.Errorf("ServiceAccount %s is being deleted; it is recreated when it is gone", key)
	}
	return live.UID, nil
}

// rules returns the permissions to request tokens of one ServiceAccount. Agents that
// reach the hub by gRPC need the verb subscribe for the response.
func rules(account string) []rbacv1.PolicyRule {
	tokens := []string{"serviceaccounts/token"}
	return []rbacv1.PolicyRule{
		{APIGroups: []string{corev1.GroupName}, Resources: tokens, ResourceNames: []string{account}, Verbs: []string{"create"}},
		{APIGroups: []string{corev1.GroupName}, Resources: tokens, Verbs: []string{"subscribe"}},
	}
}

func (r *Reconciler) ensureRole(ctx context.Context, addOn types.NamespacedName, account string) error {
	want := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: addOn.Namespace, Name: names.AddOnTokenRole(addOn.Name), Labels: labels(addOn.Name)},
		Rules:      rules(account),
	}
	var live rbacv1.Role
	current := func() bool { return equality.Semantic.DeepEqual(live.Rules, want.Rules) }
	return r.ensureObject(ctx, addOn, want, &live, current, func() error {
		config := rbacac.Role(want.Name, want.Namespace).WithLabels(want.Labels)
		for _, rule := range want.Rules {
			config.WithRules(rbacac.PolicyRule().WithAPIGroups(rule.APIGroups...).
				WithResources(rule.Resources...).WithResourceNames(rule.ResourceNames...).WithVerbs(rule.Verbs...))
		}
		if err := r.Client.Apply(ctx, config, Owner, client.ForceOwnership); err != nil {
			return fmt.Errorf("role %s: %w", client.ObjectKeyFromObject(want), err)
		}
		return nil
	})
}

// ensureObject creates an object that the cache does not hold, which costs the API
// server far less than to apply it. One that turns out to exist, or is not current, is
// repaired.
func (r *Reconciler) ensureObject(ctx context.Context, addOn types.NamespacedName, want, live client.Object, current func() bool, repair func() error) error {
	key := client.ObjectKeyFromObject(want)
	err := r.Client.Get(ctx, key, live)
	switch {
	case apierrors.IsNotFound(err):
		if err = r.Client.Create(ctx, want, Owner); err == nil {
			return nil
		}
		if !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("%T %s: %w", want, key, err)
		}
	case err != nil:
		return err
	case owns(addOn.Name, live) && current():
		return nil
	}
	return repair()
}

// subjects are the groups of a cluster's agents, with certificates and with other
// identities. Admission lets only the agent that the hub accepted use what the
// groups are given.
func subjects(cluster string) []rbacv1.Subject {
	var groups []rbacv1.Subject
	for _, group := range []string{names.ClusterGroup(cluster), names.MappedClusterGroup(cluster)} {
		groups = append(groups, rbacv1.Subject{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: group})
	}
	return groups
}

func roleRef(addOn string) rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: names.AddOnTokenRole(addOn)}
}

// ensureBinding makes or repairs the RoleBinding.
func (r *Reconciler) ensureBinding(ctx context.Context, addOn types.NamespacedName) error {
	want := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: addOn.Namespace, Name: names.AddOnTokenRole(addOn.Name), Labels: labels(addOn.Name)},
		RoleRef:    roleRef(addOn.Name),
		Subjects:   subjects(addOn.Namespace),
	}
	var live rbacv1.RoleBinding
	current := func() bool { return live.RoleRef == want.RoleRef && slices.Equal(live.Subjects, want.Subjects) }
	return r.ensureObject(ctx, addOn, want.DeepCopy(), &live, current, func() error { return r.repairBinding(ctx, want) })
}

// repairBinding applies a RoleBinding that exists. What it binds to cannot be
// changed, so one that binds to something else is replaced.
func (r *Reconciler) repairBinding(ctx context.Context, want *rbacv1.RoleBinding) error {
	key := client.ObjectKeyFromObject(want)
	var live rbacv1.RoleBinding
	if err := r.Live.Get(ctx, key, &live); client.IgnoreNotFound(err) != nil {
		return err
	} else if err == nil && live.RoleRef != want.RoleRef {
		if err := r.delete(ctx, &live); err != nil {
			return err
		}
	}
	config := rbacac.RoleBinding(want.Name, want.Namespace).WithLabels(want.Labels).
		WithRoleRef(rbacac.RoleRef().WithAPIGroup(want.RoleRef.APIGroup).WithKind(want.RoleRef.Kind).WithName(want.RoleRef.Name))
	for _, s := range want.Subjects {
		config.WithSubjects(rbacac.Subject().WithKind(s.Kind).WithAPIGroup(s.APIGroup).WithName(s.Name))
	}
	if err := r.Client.Apply(ctx, config, Owner, client.ForceOwnership); err != nil {
		return fmt.Errorf("role binding %s: %w", key, err)
	}
	return nil
}

// made returns what reader knows of an add-on's objects, in the order in which
// they go: first what lets the agent request tokens.
func made(ctx context.Context, reader client.Reader, addOn types.NamespacedName) ([]client.Object, error) {
	meta := metav1.ObjectMeta{Namespace: addOn.Namespace, Name: names.AddOnTokenRole(addOn.Name)}
	candidates := []client.Object{&rbacv1.RoleBinding{ObjectMeta: meta}, &rbacv1.Role{ObjectMeta: meta}}
	for _, name := range names.AddOnServiceAccounts(addOn.Namespace, addOn.Name) {
		account := newAccount()
		account.Namespace, account.Name = addOn.Namespace, name
		candidates = append(candidates, account)
	}
	var found []client.Object
	for _, object := range candidates {
		err := reader.Get(ctx, client.ObjectKeyFromObject(object), object)
		switch {
		case client.IgnoreNotFound(err) != nil:
			return nil, err
		case err == nil && owns(addOn.Name, object):
			found = append(found, object)
		}
	}
	return found, nil
}

// delete deletes the object that was read, not one made since under its name.
func (r *Reconciler) delete(ctx context.Context, object client.Object) error {
	if object.GetDeletionTimestamp() != nil {
		return nil
	}
	uid := object.GetUID()
	err := client.IgnoreNotFound(r.Client.Delete(ctx, object, client.Preconditions{UID: &uid}))
	if err != nil {
		return fmt.Errorf("deletion of %s/%s: %w", object.GetNamespace(), object.GetName(), err)
	}
	return nil
}
