package permissions

import (
	"fmt"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// Manifests are the permissions of an add-on on the hub.
type Manifests struct {
	AddOn string
	// MadeBy is the command that the first line names.
	MadeBy string
	// Rules are the permissions; without any, the manifests have one to replace.
	Rules []rbacv1.PolicyRule
	// Grants are the clusters to print bindings for, at least one.
	Grants []Grant
}

// document is an object, and the comment before it.
type document struct {
	comment string
	object  any
}

// PerCluster renders a Role and a RoleBinding for each grant.
func (m Manifests) PerCluster() (string, error) {
	var docs []document
	for _, g := range m.Grants {
		docs = append(docs,
			document{object: rbacv1.Role{TypeMeta: typeMeta("Role"), ObjectMeta: m.meta(g.cluster, ""), Rules: m.rules()}},
			m.binding(g, "Role", ""))
	}
	return m.render(docs)
}

// Shared renders one ClusterRole, and a RoleBinding for each grant.
func (m Manifests) Shared() (string, error) {
	docs := []document{{object: rbacv1.ClusterRole{TypeMeta: typeMeta("ClusterRole"), ObjectMeta: m.meta("", ""), Rules: m.rules()}}}
	for _, g := range m.Grants {
		// A binding cannot change its role, so each kind of role has its own name.
		docs = append(docs, m.binding(g, "ClusterRole", ":clusterrole"))
	}
	return m.render(docs)
}

func (m Manifests) binding(g Grant, kind, suffix string) document {
	return document{g.about(m.AddOn), rbacv1.RoleBinding{
		TypeMeta: typeMeta("RoleBinding"), ObjectMeta: m.meta(g.cluster, suffix), Subjects: g.subjects,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: m.meta("", "").Name},
	}}
}

func typeMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
}

func (m Manifests) meta(namespace, suffix string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: "open-cluster-management:" + m.AddOn + ":agent" + suffix, Namespace: namespace,
		Labels: map[string]string{names.LabelAddOnName: m.AddOn},
	}
}

// rules returns the rules, or one that lets the add-on read itself.
func (m Manifests) rules() []rbacv1.PolicyRule {
	if len(m.Rules) > 0 {
		return m.Rules
	}
	return []rbacv1.PolicyRule{{
		APIGroups: []string{addonv1beta1.GroupName}, Resources: []string{"managedclusteraddons"},
		ResourceNames: []string{m.AddOn}, Verbs: []string{"get"},
	}}
}

func (m Manifests) render(docs []document) (string, error) {
	var b strings.Builder
	_, _ = fmt.Fprintf(&b, "# Permissions of add-on %s on the hub, made by %q.\n", m.AddOn, m.MadeBy)
	if len(m.Rules) == 0 {
		b.WriteString("# FILL IN the rules: the one below only lets the add-on read itself.\n")
	}
	if m.Grants[0].cluster == placeholder {
		_, _ = fmt.Fprintf(&b, "# FILL IN the name of the cluster for %s, in all places, or use --cluster.\n", placeholder)
	}
	b.WriteString(`# The group is the add-on with a client certificate (driver csr), the
# ServiceAccount is the same add-on with a token (driver token): with both, a
# switch of the driver changes nothing here.
`)
	for _, doc := range docs {
		data, err := yaml.Marshal(doc.object)
		if err != nil {
			return "", fmt.Errorf("encode: %w", err)
		}
		b.WriteString("---\n" + doc.comment + string(data))
	}
	return b.String(), nil
}
