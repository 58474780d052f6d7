package template

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/labelindex"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// errPending is that an add-on has no identity yet.
var errPending = errors.New("registration subject not ready")

// subjects are who an add-on is on the hub, none while that is not known. A group that
// the add-ons of all clusters share is never among them, nor anything but an identity of
// the add-on that an agent wrote into the status.
func subjects(addOn *addonv1beta1.ManagedClusterAddOn, registrations []addonv1beta1.RegistrationConfig) []rbacv1.Subject {
	i := slices.IndexFunc(registrations, func(r addonv1beta1.RegistrationConfig) bool { return r.Type == addonv1beta1.KubeClient })
	if i < 0 {
		return nil
	}
	subject := func(kind, name string) rbacv1.Subject {
		return rbacv1.Subject{Kind: kind, APIGroup: rbacv1.GroupName, Name: name}
	}
	client := registrations[i].KubeClient
	if client.Driver != string(driver.Token) {
		return []rbacv1.Subject{
			subject(rbacv1.UserKind, client.Subject.User), subject(rbacv1.GroupKind, names.AddOnClusterGroup(addOn.Namespace, addOn.Name)),
		}
	}
	namespace, account, ok := names.ParseServiceAccountUser(client.Subject.User)
	if !ok || namespace != addOn.Namespace || !slices.Contains(names.AddOnServiceAccounts(addOn.Namespace, addOn.Name), account) {
		return nil
	}
	return []rbacv1.Subject{subject(rbacv1.UserKind, client.Subject.User)}
}

// permit gives an add-on the permissions of its template, and takes away those that the
// template no longer has.
func (r *Reconciler) permit(ctx context.Context, addOn *addonv1beta1.ManagedClusterAddOn, template *addonv1alpha1.AddOnTemplateSpec, who []rbacv1.Subject) error {
	want, err := bindings(addOn, template, who)
	if err != nil {
		return err
	}
	var errs []error
	for _, binding := range want {
		errs = append(errs, r.bind(ctx, binding))
	}
	errs = append(errs, r.unbind(ctx, client.ObjectKeyFromObject(addOn), want))
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if len(who) == 0 && len(want) > 0 {
		return errPending
	}
	return nil
}

// bindings are the RoleBindings for the hubPermissions of a template.
func bindings(addOn *addonv1beta1.ManagedClusterAddOn, template *addonv1alpha1.AddOnTemplateSpec, who []rbacv1.Subject) ([]*rbacv1.RoleBinding, error) {
	var all []*rbacv1.RoleBinding
	for _, registration := range template.Registration {
		if registration.KubeClient == nil || registration.Type != addonv1alpha1.RegistrationTypeKubeClient {
			continue
		}
		for _, permission := range registration.KubeClient.HubPermissions {
			binding, err := bindingFor(addOn, permission)
			if err != nil {
				return nil, err
			}
			// Two roles of one kind in one namespace: OCM knows one name.
			if slices.ContainsFunc(all, func(b *rbacv1.RoleBinding) bool { return b.Namespace == binding.Namespace && b.Name == binding.Name }) {
				binding.Name += ":" + binding.RoleRef.Name
			}
			binding.Subjects = who
			all = append(all, binding)
		}
	}
	return all, nil
}

func bindingFor(addOn *addonv1beta1.ManagedClusterAddOn, permission addonv1alpha1.HubPermissionConfig) (*rbacv1.RoleBinding, error) {
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Labels: labelsOf(client.ObjectKeyFromObject(addOn))}}
	switch {
	case permission.Type == addonv1alpha1.HubPermissionsBindingCurrentCluster && permission.CurrentCluster != nil:
		binding.Namespace = addOn.Namespace
		binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: permission.CurrentCluster.ClusterRoleName}
	case permission.Type == addonv1alpha1.HubPermissionsBindingSingleNamespace && permission.SingleNamespace != nil:
		binding.Namespace, binding.RoleRef = permission.SingleNamespace.Namespace, permission.SingleNamespace.RoleRef
		binding.RoleRef.APIGroup = rbacv1.GroupName
	default:
		return nil, fmt.Errorf("a hubPermission of type %s lacks the field of that type", permission.Type)
	}
	binding.Name = names.AddOnTemplateBinding(addOn.Name, binding.RoleRef.Kind)
	if binding.Namespace == addOn.Namespace {
		owner := metav1.NewControllerRef(addOn, kindAddOn())
		owner.Controller, owner.BlockOwnerDeletion = nil, nil
		binding.OwnerReferences = []metav1.OwnerReference{*owner}
		return binding, nil
	}
	// The add-ons of all clusters meet in that namespace.
	binding.Name += ":" + addOn.Namespace
	return binding, nil
}

// labelsOf are the labels of the RoleBindings of an add-on.
func labelsOf(addOn types.NamespacedName) map[string]string {
	return map[string]string{
		names.LabelAddOnName: addOn.Name, names.LabelAddOnTemplate: "",
		names.LabelAddOnTokenName: addOn.Name, names.LabelAddOnCluster: addOn.Namespace,
	}
}

// bind makes or repairs a RoleBinding. One without subjects is not made.
func (r *Reconciler) bind(ctx context.Context, want *rbacv1.RoleBinding) error {
	live := &rbacv1.RoleBinding{}
	err := r.Client.Get(ctx, client.ObjectKeyFromObject(want), live)
	switch {
	case apierrors.IsNotFound(err) && len(want.Subjects) == 0:
		return nil
	case apierrors.IsNotFound(err):
		err = r.Client.Create(ctx, want, Owner)
		if apierrors.IsAlreadyExists(err) {
			return r.foreign(ctx, want)
		}
		return explain(err, want)
	case err != nil:
		return err
	case live.RoleRef != want.RoleRef:
		// What it binds to cannot be changed. Its deletion is an event.
		return r.remove(ctx, live)
	case slices.Equal(live.Subjects, want.Subjects) && hasLabels(live, want.Labels):
		return nil
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": live.ResourceVersion, "labels": want.Labels, "ownerReferences": want.OwnerReferences},
		"subjects": want.Subjects,
	})
	if err != nil {
		return err
	}
	return explain(r.Client.Patch(ctx, live.DeepCopy(), client.RawPatch(types.MergePatchType, patch), Owner), want)
}

func hasLabels(object client.Object, want map[string]string) bool {
	for key, value := range want {
		if got, ok := object.GetLabels()[key]; !ok || got != value {
			return false
		}
	}
	return true
}

// explain says what to do about a role that the add-on manager may not bind: it may bind
// only those that an administrator lets it bind.
func explain(err error, want *rbacv1.RoleBinding) error {
	if apierrors.IsForbidden(err) && strings.Contains(err.Error(), "not currently held") {
		return fmt.Errorf("the add-on manager may not bind %s %s in namespace %s; grant its ServiceAccount %s the verb bind on it",
			want.RoleRef.Kind, want.RoleRef.Name, want.Namespace, names.HubAddOnManagerServiceAccount)
	}
	return err
}

// unbind deletes the RoleBindings of an add-on that are not wanted.
func (r *Reconciler) unbind(ctx context.Context, addOn types.NamespacedName, want []*rbacv1.RoleBinding) error {
	var list rbacv1.RoleBindingList
	ofCluster := labelindex.Is(names.LabelAddOnCluster, addOn.Namespace)
	if err := r.Client.List(ctx, &list, ofCluster, client.MatchingLabels(labelsOf(addOn)), client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	var errs []error
	for i := range list.Items {
		binding := &list.Items[i]
		if !slices.ContainsFunc(want, func(b *rbacv1.RoleBinding) bool { return b.Namespace == binding.Namespace && b.Name == binding.Name }) {
			errs = append(errs, r.remove(ctx, binding))
		}
	}
	return errors.Join(errs...)
}

// remove deletes an object as it was read, unless it is going already.
func (r *Reconciler) remove(ctx context.Context, object client.Object) error {
	if object.GetDeletionTimestamp() != nil {
		return nil
	}
	copied, _ := object.DeepCopyObject().(client.Object)
	uid := object.GetUID()
	return client.IgnoreNotFound(r.Client.Delete(ctx, copied, client.Preconditions{UID: &uid}))
}

// bound is the add-on that a RoleBinding is for.
func bound(binding client.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: binding.GetLabels()[names.LabelAddOnCluster], Name: binding.GetLabels()[names.LabelAddOnName]}
}
