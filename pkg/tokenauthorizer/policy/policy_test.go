package policy_test

import (
	"strings"
	"testing"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apis/tokenexchange/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/denial"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/policy"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/subject"
)

const hub = "https://hub.example.com"

func identity(cluster, namespace, name string) subject.Identity {
	return subject.Identity{
		Cluster: cluster, Account: subject.Account{Namespace: namespace, Name: name, UID: "u"},
		Token: subject.Token{Audiences: []string{hub}},
	}
}

func compile(t *testing.T, s policy.Spec) *policy.Rules {
	t.Helper()
	rules, findings := policy.Compile(s)
	if rules == nil {
		t.Fatalf("it does not compile: %v", findings)
	}
	return rules
}

func fixed(namespace, name string) v1alpha1.Mapping {
	return v1alpha1.Mapping{Namespace: namespace, Name: name}
}

func TestDecide(t *testing.T) {
	t.Parallel()
	perNamespace := fixed("{cluster}", "{namespace}.{name}")
	self := policy.Account{Namespace: "gateway", Name: "token-authorizer"}
	apps := []string{"app-*"}
	bound := identity("c1", "app-a", "eso")
	bound.Bound.Pod = subject.Object{Name: "p", UID: "u"}
	for _, tc := range []struct {
		name  string
		allow []v1alpha1.Rule
		deny  []v1alpha1.Denial
		id    subject.Identity
		want  string // "namespace/name by rule", or the reason
	}{
		{name: "no rule, no target", id: identity("c1", "app-a", "eso"), want: "not_allowed"},
		{
			name:  "a template",
			allow: []v1alpha1.Rule{{Namespaces: apps, ServiceAccounts: []string{"eso"}, MapTo: perNamespace}},
			id:    identity("c1", "app-a", "eso"), want: "c1/app-a.eso by c1/allow[0]",
		},
		{
			name:  "another namespace",
			allow: []v1alpha1.Rule{{Namespaces: apps, MapTo: perNamespace}},
			id:    identity("c1", "apps", "eso"), want: "not_allowed",
		},
		{
			name:  "another account",
			allow: []v1alpha1.Rule{{Namespaces: apps, ServiceAccounts: []string{"eso", "flux-*"}, MapTo: perNamespace}},
			id:    identity("c1", "app-a", "flux"), want: "not_allowed",
		},
		{
			name: "the first rule that matches decides",
			allow: []v1alpha1.Rule{
				{Namespaces: []string{"x"}, MapTo: fixed("t", "zero")},
				{Namespaces: apps, MapTo: fixed("t", "one")},
				{Namespaces: []string{"app-a"}, MapTo: fixed("t", "two")},
			},
			id: identity("c1", "app-a", "eso"), want: "t/one by c1/allow[1]",
		},
		{
			name: "a rule for other audiences is passed over",
			allow: []v1alpha1.Rule{
				{Namespaces: apps, Audiences: []string{"https://other"}, MapTo: fixed("t", "zero")},
				{Namespaces: apps, Audiences: []string{"https://x", hub}, MapTo: fixed("t", "one")},
			},
			id: identity("c1", "app-a", "eso"), want: "t/one by c1/allow[1]",
		},
		{
			name:  "only rules for other audiences",
			allow: []v1alpha1.Rule{{Namespaces: apps, Audiences: []string{"https://other"}, MapTo: fixed("t", "zero")}},
			id:    identity("c1", "app-a", "eso"), want: "not_allowed",
		},
		{
			name:  "a token without a Pod where one is demanded",
			allow: []v1alpha1.Rule{{Namespaces: apps, RequireBoundPod: true, MapTo: fixed("t", "a")}},
			id:    identity("c1", "app-a", "eso"), want: "not_bound",
		},
		{
			name:  "a token with a Pod where one is demanded",
			allow: []v1alpha1.Rule{{Namespaces: apps, RequireBoundPod: true, MapTo: fixed("t", "a")}},
			id:    bound, want: "t/a by c1/allow[0]",
		},
		{
			name:  "same name",
			allow: []v1alpha1.Rule{{Namespaces: apps, MapTo: policy.Same()}},
			id:    identity("c1", "app-a", "eso"), want: "app-a/eso by c1/allow[0]",
		},
		{
			name:  "same name in a namespace that is never open",
			allow: []v1alpha1.Rule{{Namespaces: []string{"kube-system", "a"}, MapTo: policy.Same()}},
			id:    identity("c1", "kube-system", "eso"), want: "target_denied",
		},
		{
			name:  "a configured denial",
			allow: []v1alpha1.Rule{{Namespaces: apps, MapTo: policy.Same()}},
			deny:  []v1alpha1.Denial{{TargetNamespaces: []string{"app-p*"}, TargetServiceAccounts: []string{"admin"}}},
			id:    identity("c1", "app-prod", "admin"), want: "target_denied",
		},
		{
			name:  "beside a configured denial",
			allow: []v1alpha1.Rule{{Namespaces: apps, MapTo: policy.Same()}},
			deny:  []v1alpha1.Denial{{TargetNamespaces: []string{"app-p*"}, TargetServiceAccounts: []string{"admin"}}},
			id:    identity("c1", "app-prod", "user"), want: "app-prod/user by c1/allow[0]",
		},
		{
			name:  "the authorizer itself",
			allow: []v1alpha1.Rule{{Namespaces: []string{"gateway", "b"}, MapTo: policy.Same()}},
			id:    identity("c1", "gateway", "token-authorizer"), want: "target_denied",
		},
		{
			name: "outside of the bound",
			allow: []v1alpha1.Rule{{
				MapTo:  fixed("{namespace}", "{name}"),
				Target: &v1alpha1.Target{Namespaces: []string{"team-*"}},
			}},
			id: identity("c1", "app-a", "eso"), want: "target_denied",
		},
		{
			name:  "a namespace that gets too long",
			allow: []v1alpha1.Rule{{Namespaces: apps, MapTo: fixed("{cluster}-{namespace}", "x")}},
			id:    identity("c1", "app-"+strings.Repeat("a", 58), "eso"), want: "target_denied",
		},
		{
			name:  "a name that gets too long",
			allow: []v1alpha1.Rule{{Namespaces: apps, MapTo: fixed("t", "{cluster}.{namespace}.{name}")}},
			id:    identity("c1", "app-a", strings.Repeat("a", 250)), want: "target_denied",
		},
		{
			name:  "a namespace that is none",
			allow: []v1alpha1.Rule{{MapTo: fixed("t", "a")}},
			id:    identity("c1", "a.b", "eso"), want: "not_allowed",
		},
		{
			name:  "a name that is none",
			allow: []v1alpha1.Rule{{MapTo: fixed("t", "a")}},
			id:    identity("c1", "a", "../b"), want: "not_allowed",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			rules := compile(t, policy.Spec{Cluster: "c1", Allow: tc.allow, Deny: tc.deny, Self: self})
			grant, err := rules.Decide(tc.id)
			got := grant.Target.Namespace + "/" + grant.Target.Name + " by " + grant.Rule
			if err != nil {
				got = string(denial.Of(err).Reason)
			}
			if got != tc.want {
				t.Errorf("got %s (%v), want %s", got, err, tc.want)
			}
			considered := rules.Consider(tc.id)
			matched := len(considered) > 0 && considered[len(considered)-1].Matched
			if (denial.Of(orNone(err)).Reason != denial.NotAllowed) != matched && !strings.Contains(tc.name, "that is none") {
				t.Errorf("Consider tells another story: %+v", considered)
			}
		})
	}
}

func orNone(err error) error {
	if err == nil {
		return denial.New(denial.Deadline, "none")
	}
	return err
}

func TestNoRulesAtAllAllowNothing(t *testing.T) {
	t.Parallel()
	var rules *policy.Rules
	if _, err := rules.Decide(identity("c1", "a", "b")); err == nil || denial.Of(err).Reason != denial.NotAllowed {
		t.Errorf("error %v", err)
	}
}

// TestTokensmithsMeaning: tokensmith's design, "Objectives" 3, minus what is always denied.
func TestTokensmithsMeaning(t *testing.T) {
	t.Parallel()
	rules := compile(t, policy.Spec{Cluster: "c1", Allow: []v1alpha1.Rule{policy.OpenRule()}, Expiration: 2 * time.Hour, Open: true})
	grant, err := rules.Decide(identity("c1", "default", "any.thing"))
	if err != nil || grant.Target.Namespace != "default" || grant.Target.Name != "any.thing" ||
		grant.Target.Expiration != 2*time.Hour || grant.Rule != "c1/same-name" {
		t.Errorf("%+v, %v", grant, err)
	}
	for _, namespace := range []string{"kube-system", "kube-public", "kube-node-lease", "open-cluster-management", "open-cluster-management-hub", "open-cluster-management-agent"} {
		if _, err := rules.Decide(identity("c1", namespace, "x")); err == nil || denial.Of(err).Reason != denial.TargetDenied {
			t.Errorf("%s: %v", namespace, err)
		}
	}
}

func TestDefaultsOfATarget(t *testing.T) {
	t.Parallel()
	rules := compile(t, policy.Spec{Cluster: policy.AnyCluster, Allow: []v1alpha1.Rule{{
		Namespaces: []string{"a"}, MapTo: fixed("{cluster}", "{name}"), Target: &v1alpha1.Target{Audiences: []string{"x"}},
	}}})
	for _, cluster := range []string{"c1", "c2"} {
		grant, err := rules.Decide(identity(cluster, "a", "b"))
		if err != nil || grant.Target.Namespace != cluster || grant.Target.Name != "b" || grant.Rule != "*/allow[0]" ||
			grant.Target.Expiration != policy.DefaultExpiration || len(grant.Target.Audiences) != 1 {
			t.Errorf("%+v, %v", grant, err)
		}
	}
}

//nolint:paralleltest // allocations of others would be counted
func TestDecideIsCheap(t *testing.T) {
	id := identity("c1", "app-a", "eso")
	rules := func(m v1alpha1.Mapping) *policy.Rules {
		var allow []v1alpha1.Rule
		for _, namespace := range []string{"x", "y-*", "z"} {
			allow = append(allow, v1alpha1.Rule{Namespaces: []string{namespace}, MapTo: fixed("t", "n")})
		}
		return compile(t, policy.Spec{Cluster: "c1", Allow: append(allow, v1alpha1.Rule{
			Namespaces: []string{"app-*"}, ServiceAccounts: []string{"eso"}, Audiences: []string{hub}, MapTo: m,
		})})
	}
	for name, tc := range map[string]struct {
		mapping v1alpha1.Mapping
		most    float64
	}{
		"same":     {policy.Same(), 0},
		"fixed":    {fixed("t", "n"), 0},
		"template": {fixed("{cluster}", "{namespace}.{name}"), 1},
	} {
		r := rules(tc.mapping)
		if got := testing.AllocsPerRun(100, func() {
			if _, err := r.Decide(id); err != nil {
				t.Fatal(err)
			}
		}); got > tc.most {
			t.Errorf("%s: %v allocations, want at most %v", name, got, tc.most)
		}
	}
}

func BenchmarkDecide(b *testing.B) {
	rules, _ := policy.Compile(policy.Spec{Cluster: "c1", Allow: []v1alpha1.Rule{{
		Namespaces: []string{"app-*"}, ServiceAccounts: []string{"eso"}, Audiences: []string{hub}, MapTo: fixed("{cluster}", "{namespace}.{name}"),
	}}})
	id := identity("c1", "app-a", "eso")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := rules.Decide(id); err != nil {
			b.Fatal(err)
		}
	}
}
