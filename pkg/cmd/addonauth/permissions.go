package addonauth

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// placeholder stands for a cluster in a template.
const placeholder = "CLUSTER_NAME"

// permissions is what the manifests are made of.
type permissions struct {
	addOn  string
	by     string // the command
	rules  []rbacv1.PolicyRule
	grants []grant
	// shared puts the rules into one ClusterRole.
	shared bool
}

// grant is whom the add-on is on one cluster.
type grant struct {
	cluster  string
	subjects []rbacv1.Subject
	// unknown says that the subjects are the default ones, because no status
	// reports them.
	unknown bool
}

// subjectsOf returns whom an add-on is on the hub, under either driver. What
// the status says next to the defaults counts for the driver that it is about.
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

// certificateSubjects returns whom an add-on is with a certificate of a subject.
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

// render returns the manifests.
func (p permissions) render() (string, error) {
	var b strings.Builder
	_, _ = fmt.Fprintf(&b, "# Permissions of add-on %s on the hub, made by %q.\n", p.addOn, p.by)
	if len(p.rules) == 0 {
		b.WriteString("# FILL IN the rules: the one below only lets the add-on read itself.\n")
	}
	if p.grants[0].cluster == placeholder {
		_, _ = fmt.Fprintf(&b, "# FILL IN the name of the cluster for %s, in all places, or use --cluster.\n", placeholder)
	}
	b.WriteString(`# The group is the add-on with a client certificate (driver csr), the
# ServiceAccount is the same add-on with a token (driver token): with both, a
# switch of the driver changes nothing here.
`)
	roleName := "open-cluster-management:" + p.addOn + ":agent"
	labels := map[string]string{names.LabelAddOnName: p.addOn}
	rules := p.rules
	if len(rules) == 0 {
		rules = []rbacv1.PolicyRule{{
			APIGroups: []string{addonv1beta1.GroupName}, Resources: []string{"managedclusteraddons"},
			ResourceNames: []string{p.addOn}, Verbs: []string{"get"},
		}}
	}
	var docs []document
	kind := "Role"
	if p.shared {
		kind = "ClusterRole"
		docs = append(docs, document{object: rbacv1.ClusterRole{
			TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind},
			ObjectMeta: metav1.ObjectMeta{Name: roleName, Labels: labels}, Rules: rules,
		}})
	}
	for _, g := range p.grants {
		meta := metav1.ObjectMeta{Name: roleName, Namespace: g.cluster, Labels: labels}
		if !p.shared {
			docs = append(docs, document{object: rbacv1.Role{
				TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind},
				ObjectMeta: meta, Rules: rules,
			}})
		}
		// A binding cannot change what it binds, so each kind has its own name.
		meta.Name += strings.TrimPrefix(":"+strings.ToLower(kind), ":role")
		docs = append(docs, document{p.about(g), rbacv1.RoleBinding{
			TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"},
			ObjectMeta: meta, Subjects: g.subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: roleName},
		}})
	}
	for _, doc := range docs {
		data, err := yaml.Marshal(doc.object)
		if err != nil {
			return "", fmt.Errorf("encode: %w", err)
		}
		b.WriteString("---\n" + doc.comment + string(data))
	}
	return b.String(), nil
}

// document is an object, and what is said before it.
type document struct {
	comment string
	object  any
}

// about says where the subjects of a grant come from.
func (p permissions) about(g grant) string {
	if g.cluster == placeholder || !g.unknown {
		return ""
	}
	return fmt.Sprintf(`# The status of %s on %s names no subject yet: these are the default
# ones. An agent of OCM uses ServiceAccount %s instead.
`, p.addOn, g.cluster, names.AddOnServiceAccountUpstream(p.addOn))
}
