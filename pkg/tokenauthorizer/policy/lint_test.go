package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apis/tokenexchange/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/policy"
)

func TestCompileRefuses(t *testing.T) {
	t.Parallel()
	ok := fixed("t", "n")
	for _, tc := range []struct {
		name string
		rule v1alpha1.Rule
		want string // a part of the finding
	}{
		{"a pattern in capitals", v1alpha1.Rule{Namespaces: []string{"App"}, MapTo: ok}, `clusters[0].allow[0].namespaces: "App" matches no name`},
		{"an empty pattern", v1alpha1.Rule{ServiceAccounts: []string{""}, MapTo: ok}, `allow[0].serviceAccounts: "" matches no name`},
		{"a pattern that is another language", v1alpha1.Rule{Namespaces: []string{"a[0-9]*"}, MapTo: ok}, "matches no name"},
		{"no mapping", v1alpha1.Rule{}, "mapTo: it does not say which ServiceAccount"},
		{"half a mapping", v1alpha1.Rule{MapTo: fixed("t", "")}, "mapTo: it does not say which ServiceAccount"},
		{"an unknown placeholder", v1alpha1.Rule{MapTo: fixed("t", "{user}")}, "uses {user}"},
		{"an open brace", v1alpha1.Rule{MapTo: fixed("t", "{name")}, "a brace without its partner"},
		{"a closed brace", v1alpha1.Rule{MapTo: fixed("t", "a}b{name}")}, "a brace without its partner"},
		{"a namespace with a dot", v1alpha1.Rule{MapTo: fixed("{cluster}.x", "n")}, "it makes no valid namespace"},
		{"a name with a capital", v1alpha1.Rule{MapTo: fixed("t", "N-{name}")}, "it makes no valid ServiceAccount name"},
		{"an ambiguous join", v1alpha1.Rule{MapTo: fixed("t", "{namespace}-{name}")}, "can become the same one of the hub"},
		{"an ambiguous join without anything", v1alpha1.Rule{MapTo: fixed("t", "{namespace}{name}")}, "can become the same one of the hub"},
		{"same without a list", v1alpha1.Rule{MapTo: policy.Same()}, "the cluster can choose the namespace of the hub"},
		{"same with a star", v1alpha1.Rule{Namespaces: []string{"a", "*"}, MapTo: policy.Same()}, "the cluster can choose the namespace of the hub"},
		{"a cluster that chooses", v1alpha1.Rule{MapTo: fixed("{namespace}", "n")}, "the cluster can choose the namespace"},
		{"a name that chooses", v1alpha1.Rule{Namespaces: []string{"a"}, MapTo: fixed("{name}", "n")}, "chooses the namespace of the hub by its name"},
		{"too short a life", v1alpha1.Rule{MapTo: ok, Target: &v1alpha1.Target{ExpirationSeconds: 60}}, "60 seconds are less than"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			rules, findings := policy.Compile(policy.Spec{Cluster: "c1", Path: "clusters[0]", Allow: []v1alpha1.Rule{tc.rule}})
			if rules != nil || !policy.Failed(findings) || !strings.Contains(findings[0].String(), tc.want) {
				t.Errorf("got %v, want %q", findings, tc.want)
			}
		})
	}
}

// TestTemplatesKeepServiceAccountsApart tries what a join can mix up.
func TestTemplatesKeepServiceAccountsApart(t *testing.T) {
	t.Parallel()
	namespaces := []string{"a", "b", "a-b", "a-b-c", "b-c", "c", "x-a", "a-x"}
	accounts := append([]string{"a.b", "b.a", "a.b.c", "a-b.c", "a.x.b", "x.a"}, namespaces...)
	for _, name := range []string{
		"{namespace}.{name}", "{name}.{namespace}", "x-{namespace}.{name}-x", "{namespace}.x.{name}", "{namespace}.{name}.{namespace}",
		"{namespace}-{name}", "{name}-{namespace}", "{namespace}{name}", "{name}.{name}.{namespace}", "{namespace}.{namespace}-{name}",
		"{namespace}-{namespace}.{name}", "{name}.x-{namespace}", "x{name}x.{namespace}",
	} {
		rules, _ := policy.Compile(policy.Spec{Cluster: "c1", Allow: []v1alpha1.Rule{{MapTo: fixed("t", name)}}})
		met := collision(rules, namespaces, accounts)
		if rules != nil && met != "" {
			t.Errorf("%s is taken, but %s", name, met)
		}
		if strings.HasPrefix(name, "{namespace}.{name}") && rules == nil {
			t.Errorf("%s is refused", name)
		}
	}
}

// collision names two accounts that become one.
func collision(rules *policy.Rules, namespaces, accounts []string) string {
	from := map[string]string{}
	for _, namespace := range namespaces {
		for _, account := range accounts {
			grant, err := rules.Decide(identity("c1", namespace, account))
			if err != nil {
				continue
			}
			who := namespace + "/" + account
			if other, taken := from[grant.Target.Name]; taken {
				return fmt.Sprintf("%s and %s are both %s", other, who, grant.Target.Name)
			}
			from[grant.Target.Name] = who
		}
	}
	return ""
}

func TestLint(t *testing.T) {
	t.Parallel()
	one := []string{"app"}
	rule := func(change func(*v1alpha1.Rule)) []v1alpha1.Rule {
		r := v1alpha1.Rule{Namespaces: one, ServiceAccounts: one, Audiences: []string{hub}, MapTo: fixed("t", "n")}
		change(&r)
		return []v1alpha1.Rule{r}
	}
	spec := func(cluster string, allow ...v1alpha1.Rule) policy.Spec {
		return policy.Spec{Cluster: cluster, Path: "clusters[" + cluster + "]", Allow: allow}
	}
	same := rule(func(*v1alpha1.Rule) {})
	for _, tc := range []struct {
		name  string
		specs []policy.Spec
		want  []string // severity and a part of each finding
	}{
		{"nothing to say", []policy.Spec{spec("c1", same...)}, nil},
		{"no rule", []policy.Spec{spec("c1")}, []string{"info clusters[c1].allow: cluster c1 has no rule"}},
		{
			"everything",
			[]policy.Spec{spec("c1", rule(func(r *v1alpha1.Rule) { r.Namespaces, r.ServiceAccounts = nil, []string{"*"} })...)},
			[]string{"warning clusters[c1].allow[0].mapTo: ServiceAccounts with different namespaces and names", "warning clusters[c1].allow[0]: every ServiceAccount of the cluster"},
		},
		{
			"every namespace",
			[]policy.Spec{spec("c1", rule(func(r *v1alpha1.Rule) { r.Namespaces, r.MapTo.Name = []string{"*"}, "{namespace}.{name}" })...)},
			[]string{"warning clusters[c1].allow[0].namespaces: every namespace of the cluster"},
		},
		{
			"every account",
			[]policy.Spec{spec("c1", rule(func(r *v1alpha1.Rule) { r.ServiceAccounts, r.MapTo.Name = nil, "{name}" })...)},
			[]string{"info clusters[c1].allow[0].serviceAccounts: every ServiceAccount of these"},
		},
		{
			"accounts that become one",
			[]policy.Spec{spec("c1", rule(func(r *v1alpha1.Rule) { r.Namespaces = []string{"a-*"} })...)},
			[]string{"info clusters[c1].allow[0].mapTo: ServiceAccounts with different namespaces become the same"},
		},
		{
			"a rule that is never used",
			[]policy.Spec{spec("c1", append(rule(func(r *v1alpha1.Rule) { r.Namespaces, r.MapTo.Name = []string{"a*"}, "{namespace}" }), rule(func(r *v1alpha1.Rule) { r.MapTo = fixed("u", "n") })...)...)},
			[]string{"warning clusters[c1].allow[1]: clusters[c1].allow[0] takes all"},
		},
		{
			"a denied target",
			[]policy.Spec{spec("c1", rule(func(r *v1alpha1.Rule) { r.MapTo.Namespace = "kube-system" })...)},
			[]string{"error clusters[c1].allow[0].mapTo: ServiceAccount kube-system/n of the hub is denied"},
		},
		{
			"a target outside of its bound",
			[]policy.Spec{spec("c1", rule(func(r *v1alpha1.Rule) { r.Target = &v1alpha1.Target{Namespaces: []string{"u*"}} })...)},
			[]string{"warning clusters[c1].allow[0].target.namespaces: namespace t is none of those"},
		},
		{
			"a cluster that chooses",
			[]policy.Spec{spec("c1", rule(func(r *v1alpha1.Rule) {
				r.Namespaces, r.MapTo = []string{"app-*"}, policy.Same()
			})...)},
			[]string{"warning clusters[c1].allow[0].mapTo: the cluster chooses the namespace of the hub, any of app-*"},
		},
		{
			"the API server's audience",
			[]policy.Spec{spec("c1", rule(func(r *v1alpha1.Rule) {
				r.Audiences = []string{"https://kubernetes.default.svc.cluster.local"}
			})...)},
			[]string{"warning clusters[c1].allow[0].audiences: https://kubernetes.default.svc.cluster.local is the audience of an API server"},
		},
		{
			"a long life",
			[]policy.Spec{spec("c1", rule(func(r *v1alpha1.Rule) { r.Target = &v1alpha1.Target{ExpirationSeconds: 48 * 3600} })...)},
			[]string{"warning clusters[c1].allow[0].target.expirationSeconds: a token that leaks"},
		},
		{
			"an add-on's account",
			[]policy.Spec{spec("c1", rule(func(r *v1alpha1.Rule) {
				r.ServiceAccounts, r.MapTo = []string{"web-*"}, fixed("{cluster}", "{name}")
			})...)},
			[]string{"warning clusters[c1].allow[0].mapTo: it can lead to the account of an add-on of the cluster (c1"},
		},
		{"all clusters as one", []policy.Spec{spec("*", same...)}, []string{"warning clusters[*].allow[0].mapTo: workloads of different clusters"}},
		{
			"another cluster's namespace",
			[]policy.Spec{spec("t"), spec("c1", same...)},
			[]string{"info clusters[t].allow: cluster t has no rule", "warning clusters[c1].allow[0].mapTo: namespace t of the hub belongs to another cluster"},
		},
		{
			"two clusters, one fixed account",
			[]policy.Spec{spec("c1", same...), spec("c2", same...)},
			[]string{"info clusters[c2].allow[0].mapTo: it can lead to the same ServiceAccount of the hub as clusters[c1].allow[0] of cluster c1: t/n"},
		},
		{
			"two clusters, templates that meet",
			[]policy.Spec{
				spec("c1", rule(func(r *v1alpha1.Rule) { r.Namespaces, r.MapTo.Name = []string{"a*"}, "{namespace}.x" })...),
				spec("c2", rule(func(r *v1alpha1.Rule) { r.MapTo.Name = "ab.x" })...),
			},
			[]string{"warning clusters[c1].allow[0].mapTo: it can lead to the same ServiceAccount of the hub as clusters[c2].allow[0] of cluster c2: t/ab.x"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got := lint(tc.specs)
			for i, f := range got {
				if i >= len(tc.want) || !strings.HasPrefix(string(f.Severity)+" "+f.String(), tc.want[i]) || f.Fix == "" {
					t.Errorf("finding %d: %s %s", i, f.Severity, f)
				}
			}
			if len(got) < len(tc.want) {
				t.Errorf("%d findings, want %d", len(got), len(tc.want))
			}
		})
	}
}

func TestCheckDeny(t *testing.T) {
	t.Parallel()
	findings := policy.CheckDeny("deny", []v1alpha1.Denial{{TargetNamespaces: []string{"a*"}}, {}, {TargetServiceAccounts: []string{"A"}}})
	if len(findings) != 2 || findings[0].Path != "deny[1]" || findings[1].Path != "deny[2].targetServiceAccounts" || !policy.Failed(findings) {
		t.Errorf("%v", findings)
	}
}

func TestRBAC(t *testing.T) {
	t.Parallel()
	specs := []policy.Spec{
		{Cluster: "c1", Path: "clusters[0]", Allow: []v1alpha1.Rule{
			{Namespaces: []string{"a", "b"}, ServiceAccounts: []string{"y", "x"}, MapTo: fixed("t", "{namespace}.{name}")},
			{Namespaces: []string{"a"}, MapTo: fixed("t", "plain")},
			{Namespaces: []string{"a-*"}, ServiceAccounts: []string{"x"}, MapTo: policy.Same()},
			{Namespaces: []string{"kube-*"}, ServiceAccounts: []string{"x"}, MapTo: policy.Same()},
		}},
		{Cluster: "*", Path: "clusters[1]", Allow: []v1alpha1.Rule{{MapTo: fixed("{cluster}", "{namespace}.{name}")}}},
	}
	got := policy.RBAC(specs, policy.Known{
		Self:       policy.Account{Namespace: "h", Name: "sa"},
		Namespaces: []string{"a-1", "a-2", "b-1", "kube-system"}, Clusters: []string{"c1", "c8", "c9"},
	})
	want := map[string]string{"a-1": "x", "a-2": "x", "t": "a.x a.y b.x b.y plain", "c8": "", "c9": ""}
	if len(got.Roles) != len(want) || len(got.Bindings) != len(want) || len(got.Open) != 2 {
		t.Fatalf("%d roles, %d bindings, open %v", len(got.Roles), len(got.Bindings), got.Open)
	}
	for i, role := range got.Roles {
		accounts, ok := want[role.Namespace]
		if !ok || strings.Join(role.Rules[0].ResourceNames, " ") != accounts || role.Rules[0].Resources[0] != "serviceaccounts/token" {
			t.Errorf("%s: %v", role.Namespace, role.Rules)
		}
		if (accounts == "") != (role.Annotations[policy.AnnotationDescription] != "") {
			t.Errorf("%s: annotations %v", role.Namespace, role.Annotations)
		}
		b := got.Bindings[i]
		if b.Namespace != role.Namespace || b.RoleRef.Name != role.Name || b.Subjects[0].Namespace != "h" || b.Subjects[0].Name != "sa" {
			t.Errorf("%s: %+v", role.Namespace, b)
		}
	}
}

// FuzzCompile holds the package's invariant for whatever is written: what a
// token says leads to a valid name, in no denial namespace.
func FuzzCompile(f *testing.F) {
	f.Add("app-*", "{cluster}", "{namespace}.{name}", "app-a", "eso")
	f.Add("*", "{namespace}", "{name}", "kube-system", "x")
	f.Add("", "t-{namespace}", "{name}{name}", "a-b", "c.d")
	f.Fuzz(func(t *testing.T, pattern, namespace, name, fromNamespace, fromName string) {
		spec := policy.Spec{Cluster: "c1", Allow: []v1alpha1.Rule{{Namespaces: []string{pattern}, MapTo: fixed(namespace, name)}}}
		lint([]policy.Spec{spec, spec})
		policy.RBAC([]policy.Spec{spec}, policy.Known{Namespaces: []string{"a"}})
		rules, _ := policy.Compile(spec)
		grant, err := rules.Decide(identity("c1", fromNamespace, fromName))
		if err != nil {
			return
		}
		if to := grant.Target.Namespace; strings.HasPrefix(to, "kube-") || strings.HasPrefix(to, "open-cluster-management") || to == "" || strings.ContainsAny(to+grant.Target.Name, "/{}* ") {
			t.Errorf("it leads to %q/%q", to, grant.Target.Name)
		}
	})
}

// lint is what is said of policies: of each by itself, and of all together.
func lint(specs []policy.Spec) []policy.Finding {
	var out []policy.Finding
	for _, s := range specs {
		out = append(out, policy.LintOne(s)...)
	}
	return append(out, policy.LintTogether(specs)...)
}
