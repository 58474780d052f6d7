package template

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/internal/addonindex"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/access"
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
	client := registrations[i].KubeClient
	user, group := subject(rbacv1.UserKind, client.Subject.User), subject(rbacv1.GroupKind, names.AddOnClusterGroup(addOn.Namespace, addOn.Name))
	switch {
	// An agent that changes to tokens writes the driver first, and then the subject.
	case client.Driver != string(driver.Token), certificateUser(addOn, user.Name):
		return []rbacv1.Subject{user, group}
	case tokenUser(addOn, user.Name):
		return []rbacv1.Subject{user}
	}
	return nil
}

func subject(kind, name string) rbacv1.Subject {
	return rbacv1.Subject{Kind: kind, APIGroup: rbacv1.GroupName, Name: name}
}

// certificateUser reports whether a user is the add-on's with driver csr.
func certificateUser(addOn *addonv1beta1.ManagedClusterAddOn, user string) bool {
	return strings.HasPrefix(user, names.AddOnUser(addOn.Namespace, addOn.Name, ""))
}

// tokenUser reports whether a user is the add-on's with driver token.
func tokenUser(addOn *addonv1beta1.ManagedClusterAddOn, user string) bool {
	namespace, account, ok := names.ParseServiceAccountUser(user)
	return ok && namespace == addOn.Namespace && slices.Contains(names.AddOnServiceAccounts(namespace, addOn.Name), account)
}

// earlier returns those of the live subjects of a RoleBinding that an add-on, which is now
// who, has for the driver that it had before, and how long: its Pods may still be them.
func earlier(addOn *addonv1beta1.ManagedClusterAddOn, who, live []rbacv1.Subject, now time.Time) ([]rbacv1.Subject, time.Duration) {
	if len(who) == 0 {
		return nil, 0
	}
	stored := names.ConditionCertificateRotated
	before := func(s rbacv1.Subject) bool { return s.Kind == rbacv1.UserKind && tokenUser(addOn, s.Name) }
	if tokenUser(addOn, who[0].Name) {
		stored = names.ConditionTokenRefreshed
		before = func(s rbacv1.Subject) bool {
			return s.Kind == rbacv1.UserKind && certificateUser(addOn, s.Name) || s == subject(rbacv1.GroupKind, names.AddOnClusterGroup(addOn.Namespace, addOn.Name))
		}
	}
	left := driver.SwitchGraceLeft(apimeta.FindStatusCondition(addOn.Status.Conditions, stored), now)
	var subjects []rbacv1.Subject
	for _, s := range live {
		if left > 0 && !slices.Contains(who, s) && before(s) {
			subjects = append(subjects, s)
		}
	}
	if len(subjects) == 0 {
		return nil, 0
	}
	return subjects, left
}

// permit gives an add-on the permissions of its template, and takes away those that the
// template no longer has. It returns when to look again, 0 for never.
func (r *Reconciler) permit(ctx context.Context, addOn *addonv1beta1.ManagedClusterAddOn, template *addonv1alpha1.AddOnTemplateSpec,
	who []rbacv1.Subject,
) (after time.Duration, err error) {
	want, err := bindings(addOn, template, who)
	if err != nil {
		return 0, err
	}
	var errs []error
	for _, binding := range want {
		left, err := r.bind(ctx, addOn, binding)
		if err == nil && binding.Namespace != addOn.Namespace {
			err = r.supersede(ctx, addOn.Name, binding)
		}
		after, errs = max(after, left), append(errs, err)
	}
	errs = append(errs, r.unbind(ctx, client.ObjectKeyFromObject(addOn), want))
	if err := errors.Join(errs...); err != nil {
		return after, err
	}
	if len(who) == 0 && len(want) > 0 {
		return after, errPending
	}
	return after, nil
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
	all := upstreamLabels(addOn.Name)
	all[names.LabelAddOnTokenName], all[names.LabelAddOnCluster] = addOn.Name, addOn.Namespace
	return all
}

// bind makes or repairs a RoleBinding of an add-on, and returns how long it also has
// subjects of an earlier driver. One without subjects is not made.
func (r *Reconciler) bind(ctx context.Context, addOn *addonv1beta1.ManagedClusterAddOn, want *rbacv1.RoleBinding) (left time.Duration, err error) {
	live := &rbacv1.RoleBinding{}
	err = r.Client.Get(ctx, client.ObjectKeyFromObject(want), live)
	switch {
	case apierrors.IsNotFound(err) && len(want.Subjects) == 0:
		return 0, nil
	case apierrors.IsNotFound(err):
		if err := r.granted(ctx, want); err != nil {
			return 0, err
		}
		err = r.Client.Create(ctx, want, Owner)
		if apierrors.IsAlreadyExists(err) {
			return 0, r.adopt(ctx, want)
		}
		return 0, r.explain(ctx, err, want)
	case err != nil:
		return 0, err
	case live.RoleRef != want.RoleRef:
		// What it binds to cannot be changed. Its deletion is an event.
		return 0, r.remove(ctx, live)
	}
	still, left := earlier(addOn, want.Subjects, live.Subjects, r.Clock.Now())
	want.Subjects = slices.Concat(want.Subjects, still)
	if slices.Equal(live.Subjects, want.Subjects) && hasLabels(live, want.Labels) {
		return left, nil
	}
	if err := r.granted(ctx, want); err != nil {
		return left, err
	}
	return left, r.rebind(ctx, live, want)
}

// permissions returns what the add-on manager needs to write a RoleBinding: the
// permission that RBAC requires unless it has everything that the role allows, and the
// grant to the add-on.
// See docs/adr/0020-grants-for-templates.md.
func permissions(want *rbacv1.RoleBinding) (role, grant access.Right) {
	scope, namespace := names.HubPermissionsSingleNamespace, want.Namespace
	if want.Namespace == want.Labels[names.LabelAddOnCluster] {
		scope, namespace = names.HubPermissionsCurrentCluster, ""
	}
	role = access.Right{
		Verb: "bind", Resource: schema.GroupResource{Group: rbacv1.GroupName, Resource: strings.ToLower(want.RoleRef.Kind) + "s"},
		Namespace: want.Namespace, Name: want.RoleRef.Name,
	}
	return role, access.Right{
		Verb: "bind", Resource: schema.GroupResource{Group: addonv1beta1.GroupName, Resource: names.ResourceHubPermissions + "/" + scope},
		Namespace: namespace, Name: names.HubPermissionGrant(want.Labels[names.LabelAddOnTokenName], want.RoleRef.Kind, want.RoleRef.Name),
	}
}

// granted returns an error that names all that is missing unless the add-on is granted a
// role. Admission asks as well, but not yet when the add-on manager starts with the policy.
func (r *Reconciler) granted(ctx context.Context, want *rbacv1.RoleBinding) error {
	role, grant := permissions(want)
	missing, err := access.Missing(ctx, r.Client, []access.Right{role, grant})
	if err != nil || !slices.Contains(missing, grant) {
		return err
	}
	return cmp.Or(r.grantable(ctx, want), lacks(want, missing))
}

// grantable returns an error for a namespace in which no grant has effect, because admission
// denies the RoleBinding there anyway.
// See docs/adr/0020-grants-for-templates.md.
func (r *Reconciler) grantable(ctx context.Context, want *rbacv1.RoleBinding) error {
	if want.Namespace == want.Labels[names.LabelAddOnCluster] {
		return nil
	}
	of := func(prefix string) bool { return strings.HasPrefix(want.Namespace, prefix) }
	if !slices.ContainsFunc([]string{"kube-", "openshift-", "open-cluster-management"}, of) {
		err := r.Client.Get(ctx, client.ObjectKey{Name: want.Namespace}, &clusterv1.ManagedCluster{})
		if err != nil {
			return client.IgnoreNotFound(err)
		}
	}
	return fmt.Errorf("an AddOnTemplate gets no permission in namespace %s, which is one of the system or of another cluster; name one of your own in its hubPermissions", want.Namespace)
}

// lacks says which permissions the add-on manager lacks for a RoleBinding.
func lacks(want *rbacv1.RoleBinding, missing []access.Right) error {
	return fmt.Errorf("the add-on manager may not bind %s %s for the add-on %s in namespace %s; let its ServiceAccount %s %s",
		want.RoleRef.Kind, want.RoleRef.Name, want.Labels[names.LabelAddOnTokenName], want.Namespace, names.HubAddOnManagerServiceAccount, access.Phrase(missing))
}

// adopt takes over a RoleBinding that is not in the cache: one that OCM made for the
// add-on lacks our labels. OCM also binds a group of the add-on on all clusters; adopt
// removes it.
func (r *Reconciler) adopt(ctx context.Context, want *rbacv1.RoleBinding) error {
	live := &rbacv1.RoleBinding{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(want), live); err != nil {
		return client.IgnoreNotFound(err)
	}
	switch {
	case hasLabels(live, want.Labels):
		return nil // It is in the cache soon.
	case !hasLabels(live, upstreamLabels(want.Labels[names.LabelAddOnName])):
		return fmt.Errorf("RoleBinding %s exists and lacks the labels of the add-on; delete it", client.ObjectKeyFromObject(want))
	case live.RoleRef != want.RoleRef:
		return fmt.Errorf("RoleBinding %s of OCM binds %s %s; delete it", client.ObjectKeyFromObject(want), live.RoleRef.Kind, live.RoleRef.Name)
	}
	return r.rebind(ctx, live, want)
}

// supersede adopts the one RoleBinding that OCM made in a namespace for the add-on on all
// clusters once all of them have one of their own. It has the labels of one cluster then,
// whose add-on does not want it, which deletes it.
func (r *Reconciler) supersede(ctx context.Context, addOn string, want *rbacv1.RoleBinding) error {
	name := names.AddOnTemplateBinding(addOn, want.RoleRef.Kind)
	key := client.ObjectKey{Namespace: want.Namespace, Name: name}
	if _, done := r.superseded.Load(key); done {
		return nil
	}
	var all addonv1beta1.ManagedClusterAddOnList
	if err := r.Client.List(ctx, &all, addonindex.Named(addOn), client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	for i := range all.Items {
		own := client.ObjectKey{Namespace: key.Namespace, Name: name + ":" + all.Items[i].Namespace}
		if err := r.Client.Get(ctx, own, &rbacv1.RoleBinding{}); err != nil {
			return client.IgnoreNotFound(err) // That cluster may still need OCM's.
		}
	}
	live := &rbacv1.RoleBinding{}
	err := r.Live.Get(ctx, key, live)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	if err == nil && hasLabels(live, upstreamLabels(addOn)) && live.RoleRef == want.RoleRef {
		if err := r.rebind(ctx, live, want); err != nil {
			return err
		}
	}
	r.superseded.Store(key, true)
	return nil
}

// upstreamLabels returns the labels that OCM gives to the RoleBindings of an add-on.
// See docs/reference/wire-contract.md#addon-templates.
func upstreamLabels(addOn string) map[string]string {
	return map[string]string{names.LabelAddOnName: addOn, names.LabelAddOnTemplate: ""}
}

// rebind changes the subjects of a RoleBinding, and what the controller knows it by.
func (r *Reconciler) rebind(ctx context.Context, live, want *rbacv1.RoleBinding) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": live.ResourceVersion, "labels": want.Labels, "ownerReferences": want.OwnerReferences},
		"subjects": want.Subjects,
	})
	if err != nil {
		return err
	}
	return r.explain(ctx, r.Client.Patch(ctx, live.DeepCopy(), client.RawPatch(types.MergePatchType, patch), Owner), want)
}

func hasLabels(object client.Object, want map[string]string) bool {
	for key, value := range want {
		if got, ok := object.GetLabels()[key]; !ok || got != value {
			return false
		}
	}
	return true
}

// explain says what to do about a RoleBinding that the API server or admission denies the
// add-on manager. An administrator can grant what is missing; if nothing is, the namespace or
// the role is one that no template gets, and the answer says so.
func (r *Reconciler) explain(ctx context.Context, err error, want *rbacv1.RoleBinding) error {
	if !apierrors.IsForbidden(err) {
		return err
	}
	role, grant := permissions(want)
	missing, failed := access.Missing(ctx, r.Client, []access.Right{role, grant})
	if failed == nil && len(missing) > 0 {
		return lacks(want, missing)
	}
	return fmt.Errorf("%s %s in namespace %s: %w", want.RoleRef.Kind, want.RoleRef.Name, want.Namespace, err)
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
