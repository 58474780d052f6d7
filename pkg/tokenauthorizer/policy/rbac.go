package policy

import (
	"cmp"
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// AnnotationDescription describes what an object is for (Kubernetes'
// well-known annotations).
const AnnotationDescription = "kubernetes.io/description"

// Known describes the hub for working out permissions.
type Known struct {
	// Self is the ServiceAccount that gets them.
	Self Account
	// Namespaces exist on the hub: patterns are spelled out among them.
	Namespaces []string
	// Clusters publish their keys to the hub: AnyCluster means those of them that
	// have no policy of their own.
	Clusters []string
}

// Permissions are the permissions that the token authorizer needs on the hub.
type Permissions struct {
	// Roles and Bindings are pairs, by namespace.
	Roles    []rbacv1.Role
	Bindings []rbacv1.RoleBinding
	// Open says which rules cannot be spelled out with what is known.
	Open []string
}

// grants are the accounts of one namespace; every is why names cannot be listed.
type grants struct {
	accounts []string
	every    string
}

// RBAC returns the least permissions that all rules need: in each target namespace the
// creation of tokens for the rules' accounts, by name, and the watch on ServiceAccounts
// that finds their UID. If the names of a rule's targets are not known beforehand, the
// Role has no names and says why in an annotation.
func RBAC(specs []Spec, known Known) Permissions {
	var out Permissions
	found := map[string]*grants{}
	own := map[string]bool{}
	for _, s := range specs {
		own[s.Cluster] = true
	}
	for _, s := range specs {
		rules, _ := Compile(s)
		if rules == nil {
			out.Open = append(out.Open, s.Path+" has errors; see policy lint")
			continue
		}
		clusters := []string{s.Cluster}
		if s.Cluster == AnyCluster {
			clusters = slices.DeleteFunc(slices.Clone(known.Clusters), func(cluster string) bool { return own[cluster] })
		}
		for i := range rules.rules {
			for _, cluster := range clusters {
				rules.collect(&rules.rules[i], cluster, known.Namespaces, found, &out)
			}
		}
	}
	for _, namespace := range slices.Sorted(maps.Keys(found)) {
		out.Roles = append(out.Roles, role(namespace, found[namespace]))
		out.Bindings = append(out.Bindings, binding(namespace, known.Self))
	}
	return out
}

// collect adds the accounts that a rule reaches for a cluster.
func (r *Rules) collect(c *rule, cluster string, existing []string, found map[string]*grants, out *Permissions) {
	for _, to := range c.reaches(cluster) {
		namespaces := []string{to.namespace}
		if wild(to.namespace) {
			g := compileGlobs(namespaces)
			namespaces = slices.DeleteFunc(slices.Clone(existing), func(n string) bool { return !g.match(n) })
			out.Open = append(out.Open, c.name+" leads to any namespace "+to.namespace+": those that exist are listed; repeat this when one is added")
		}
		for _, namespace := range namespaces {
			r.collectIn(c, reach{namespace, to.name}, found)
		}
	}
	slices.Sort(out.Open)
	out.Open = slices.Compact(out.Open)
}

func (r *Rules) collectIn(c *rule, to reach, found map[string]*grants) {
	if r.shut(to) || !c.boundless && !c.bound.match(to.namespace) {
		return
	}
	g := found[to.namespace]
	if g == nil {
		g = &grants{}
		found[to.namespace] = g
	}
	if wild(to.name) {
		g.every = cmp.Or(g.every, c.name)
		return
	}
	if i, ok := slices.BinarySearch(g.accounts, to.name); !ok {
		g.accounts = slices.Insert(g.accounts, i, to.name)
	}
}

// RoleName names the Roles and RoleBindings, in every namespace.
const RoleName = "open-cluster-management:" + names.TokenAuthorizer + ":exchange"

func meta(namespace string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: RoleName, Labels: map[string]string{"app": names.TokenAuthorizer}}
}

func role(namespace string, g *grants) rbacv1.Role {
	out := rbacv1.Role{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "Role"},
		ObjectMeta: meta(namespace),
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"}, Verbs: []string{"create"}, ResourceNames: g.accounts},
			{APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, Verbs: []string{"get", "list", "watch"}},
		},
	}
	if g.every != "" {
		out.Rules[0].ResourceNames = nil
		out.Annotations = map[string]string{
			AnnotationDescription: "Tokens of every ServiceAccount of this namespace: rule " + g.every + " leads to names that are not known beforehand.",
		}
	}
	return out
}

func binding(namespace string, self Account) rbacv1.RoleBinding {
	return rbacv1.RoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"},
		ObjectMeta: meta(namespace),
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: self.Namespace, Name: self.Name}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: RoleName},
	}
}
