package permissions

import (
	"context"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/inventory"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// placeholder stands for a cluster in a template.
const placeholder = "CLUSTER_NAME"

// Grant is the add-on of one cluster as the subjects of a binding.
type Grant struct {
	cluster  string
	subjects []rbacv1.Subject
	// unknown is true for the default subjects, when no status reports others.
	unknown bool
}

// NotInstalledError reports an add-on that no cluster has.
type NotInstalledError struct{ AddOn string }

// Error implements error.
func (e *NotInstalledError) Error() string { return "no cluster has an add-on " + e.AddOn }

// Template returns the grant for a cluster that the user fills in.
func Template(addOn string) Grant { return defaultGrant(placeholder, addOn) }

// OnAllClusters returns a grant for each cluster that has the add-on. With none the error is a
// *NotInstalledError.
func OnAllClusters(ctx context.Context, c client.Client, addOn string) ([]Grant, error) {
	objs, err := inventory.Objects(ctx, c, inventory.Filter{Names: []string{addOn}})
	if err != nil {
		return nil, err
	}
	if len(objs) == 0 {
		return nil, &NotInstalledError{AddOn: addOn}
	}
	var out []Grant
	for _, obj := range objs {
		out = append(out, grantOf(obj))
	}
	return out, nil
}

// OnClusters returns a grant for each of the clusters, with the default subjects for those
// that do not have the add-on.
func OnClusters(ctx context.Context, c client.Client, addOn string, clusters []string) ([]Grant, error) {
	objs, err := inventory.Objects(ctx, c, inventory.Filter{Names: []string{addOn}, Clusters: clusters})
	if err != nil {
		return nil, err
	}
	var out []Grant
	for _, cluster := range clusters {
		i := slices.IndexFunc(objs, func(obj *addonv1beta1.ManagedClusterAddOn) bool { return obj.Namespace == cluster })
		if i < 0 {
			out = append(out, defaultGrant(cluster, addOn))
			continue
		}
		out = append(out, grantOf(objs[i]))
	}
	return out, nil
}

func defaultGrant(cluster, addOn string) Grant {
	return Grant{cluster: cluster, subjects: subjectsOf(cluster, addOn, nil), unknown: true}
}

func grantOf(obj *addonv1beta1.ManagedClusterAddOn) Grant {
	config := inventory.KubeClient(obj)
	return Grant{
		cluster: obj.Namespace, subjects: subjectsOf(obj.Namespace, obj.Name, config),
		unknown: config == nil || config.Subject.User == "",
	}
}

// about returns the comment on subjects that no status reports, or "".
func (g Grant) about(addOn string) string {
	if g.cluster == placeholder || !g.unknown {
		return ""
	}
	return fmt.Sprintf(`# The status of %s on %s names no subject yet: these are the default
# ones. An agent of OCM uses ServiceAccount %s instead.
`, addOn, g.cluster, names.AddOnServiceAccountUpstream(addOn))
}

// subjectsOf returns the subjects of an add-on on the hub, under either driver. What the
// status reports replaces the default of the driver that it is about.
func subjectsOf(cluster, addOn string, config *addonv1beta1.KubeClientConfig) []rbacv1.Subject {
	account := names.AddOnServiceAccount(cluster, addOn)
	certificate := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: names.AddOnClusterGroup(cluster, addOn)}}
	if config != nil && config.Subject.User != "" {
		namespace, name, isAccount := names.ParseServiceAccountUser(config.Subject.User)
		switch {
		case !isAccount:
			certificate = certificateSubjects(cluster, addOn, config.Subject.BaseSubject)
		case namespace == cluster && slices.Contains(names.AddOnServiceAccounts(cluster, addOn), name):
			account = name
		}
	}
	return append(certificate, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: cluster, Name: account})
}

// certificateSubjects returns the subjects of an add-on with a certificate of a subject.
func certificateSubjects(cluster, addOn string, subject addonv1beta1.BaseSubject) []rbacv1.Subject {
	var out []rbacv1.Subject
	for _, group := range ownGroups(cluster, addOn, subject.Groups) {
		out = append(out, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: group})
	}
	if len(out) == 0 {
		out = append(out, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: subject.User})
	}
	return out
}

// ownGroups leaves out the groups that the add-on has in common with others:
// with the default group there, nothing else is needed.
func ownGroups(cluster, addOn string, groups []string) []string {
	if own := names.AddOnClusterGroup(cluster, addOn); slices.Contains(groups, own) {
		return []string{own}
	}
	return slices.DeleteFunc(slices.Clone(groups), func(group string) bool {
		return group == names.AddOnGroup(addOn) || group == "system:authenticated"
	})
}
