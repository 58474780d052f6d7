package policy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apis/tokenexchange/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/denial"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/policy"
)

// TestNamesAtTheirLimits: a name is one up to the last character that Kubernetes
// allows, and none from the next on.
func TestNamesAtTheirLimits(t *testing.T) {
	t.Parallel()
	rules := compile(t, policy.Spec{Cluster: "c1", Allow: []v1alpha1.Rule{{Namespaces: []string{"*"}, MapTo: fixed("t", "n")}}})
	for _, tc := range []struct {
		namespace, name string
		valid           bool
	}{
		{strings.Repeat("a", 63), "x", true},
		{strings.Repeat("a", 64), "x", false},
		{"a", strings.Repeat("a", 253), true},
		{"a", strings.Repeat("a", 254), false},
		{"az09", "az.09", true},
		{"0-9", "a-0.9-z", true},
		{"", "x", false},
		{"a", "", false},
		{"-a", "x", false},
		{"a-", "x", false},
		{"a.b", "x", false},
		{"a", ".x", false},
		{"a", "x.", false},
		{"a", "x..y", false},
		{"a", "x-.y", false},
		{"a", "x.-y", false},
		{"a/", "x", false},
		{"a:", "x", false},
		{"a`", "x", false},
		{"a{", "x", false},
		{"A", "x", false},
	} {
		_, err := rules.Decide(identity("c1", tc.namespace, tc.name))
		if (err == nil) != tc.valid || err != nil && denial.Of(err).Reason != denial.NotAllowed {
			t.Errorf("%q/%q: %v, want valid %v", tc.namespace, tc.name, err, tc.valid)
		}
	}
}

func TestWhyNothingIsAllowed(t *testing.T) {
	t.Parallel()
	for want, allow := range map[string][]v1alpha1.Rule{
		"its cluster has none":                   nil,
		"takes only tokens for the audiences x":  {{Namespaces: []string{"app"}, Audiences: []string{"x"}, MapTo: fixed("t", "n")}},
		"no rule allows app/eso of cluster c1":   {{Namespaces: []string{"other"}, Audiences: []string{"x"}, MapTo: fixed("t", "n")}},
		"no rule allows app/eso of cluster c1\n": {{Namespaces: []string{"app"}, ServiceAccounts: []string{"flux"}, Audiences: []string{"x"}, MapTo: fixed("t", "n")}},
	} {
		_, err := compile(t, policy.Spec{Cluster: "c1", Allow: allow}).Decide(identity("c1", "app", "eso"))
		if err == nil || !strings.Contains(err.Error(), strings.TrimSpace(want)) || strings.HasSuffix(want, "\n") && strings.Contains(err.Error(), "audiences") {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestPatterns: what lies between stars stands in a name in that order, and once
// for each time that it is written.
func TestPatterns(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		pattern, namespace string
		want               bool
	}{
		{"x*ab*ab*y", "xab-aby", true},
		{"x*ab*ab*y", "xababy", true},
		{"x*ab*ab*y", "xaby", false},
		{"x*ab*cd*y", "xabcdy", true},
		{"x*ab*cd*y", "xcdaby", false},
		{"*aa*a*", "aa", false},
		{"*aa*a*", "aaa", true},
		{"*ab*ba*", "aba", false},
		{"*ab*ba*", "ab-ba", true},
		{"a*a", "a", false},
		{"a*a", "aa", true},
		{"a*", "a", true},
		{"*a", "ba", true},
		{"*a", "ab", false},
	} {
		rules := compile(t, policy.Spec{Cluster: "c1", Allow: []v1alpha1.Rule{{Namespaces: []string{tc.pattern}, MapTo: fixed("t", "n")}}})
		if _, err := rules.Decide(identity("c1", tc.namespace, "x")); (err == nil) != tc.want {
			t.Errorf("%s and %s: %v", tc.pattern, tc.namespace, err)
		}
	}
}

// messages are what the linter says about one rule of cluster c1.
func messages(self policy.Account, allow ...v1alpha1.Rule) string {
	var out []string
	for _, f := range policy.LintOne(policy.Spec{Cluster: "c1", Allow: allow, Self: self}) {
		out = append(out, f.String())
	}
	return strings.Join(out, "\n")
}

// TestAdviceAtItsLimits: each advice is given from a point on, and not before.
func TestAdviceAtItsLimits(t *testing.T) {
	t.Parallel()
	lead := func(to v1alpha1.Mapping, target v1alpha1.Target) v1alpha1.Rule {
		return v1alpha1.Rule{Namespaces: []string{"app"}, ServiceAccounts: []string{"eso"}, MapTo: to, Target: &target}
	}
	aud := func(audiences ...string) v1alpha1.Rule {
		r := lead(fixed("t", "n"), v1alpha1.Target{})
		r.Audiences = audiences
		return r
	}
	choose := func(bound ...string) v1alpha1.Rule {
		return v1alpha1.Rule{ServiceAccounts: []string{"eso"}, MapTo: fixed("{namespace}", "n"), Target: &v1alpha1.Target{Namespaces: bound}}
	}
	long := strings.Repeat("a", 252)
	self := policy.Account{Namespace: "gateway", Name: "authorizer"}
	for name, tc := range map[string]struct {
		self  policy.Account
		allow []v1alpha1.Rule
		says  string
		want  bool
	}{
		"the least life":               {allow: []v1alpha1.Rule{lead(fixed("t", "n"), v1alpha1.Target{ExpirationSeconds: 600})}, says: "less than"},
		"less than the least life":     {allow: []v1alpha1.Rule{lead(fixed("t", "n"), v1alpha1.Target{ExpirationSeconds: 599})}, says: "less than", want: true},
		"a day":                        {allow: []v1alpha1.Rule{lead(fixed("t", "n"), v1alpha1.Target{ExpirationSeconds: 24 * 3600})}, says: "leaks"},
		"more than a day":              {allow: []v1alpha1.Rule{lead(fixed("t", "n"), v1alpha1.Target{ExpirationSeconds: 25 * 3600})}, says: "leaks", want: true},
		"the longest pattern":          {allow: []v1alpha1.Rule{{Namespaces: []string{long + "*"}, MapTo: fixed("t", "n")}}, says: "matches no name"},
		"a pattern that is too long":   {allow: []v1alpha1.Rule{{Namespaces: []string{long + "a*"}, MapTo: fixed("t", "n")}}, says: "matches no name", want: true},
		"never used":                   {allow: []v1alpha1.Rule{aud(), aud("a")}, says: "never used", want: true},
		"never used, audiences":        {allow: []v1alpha1.Rule{aud("a", "b"), aud("a")}, says: "never used", want: true},
		"used for other audiences":     {allow: []v1alpha1.Rule{aud("a"), aud()}, says: "never used"},
		"used for one more audience":   {allow: []v1alpha1.Rule{aud("a"), aud("a", "b")}, says: "never used"},
		"the authorizer":               {self: self, allow: []v1alpha1.Rule{lead(fixed("gateway", "authorizer"), v1alpha1.Target{})}, says: "denied to every rule", want: true},
		"beside the authorizer":        {self: self, allow: []v1alpha1.Rule{lead(fixed("gateway", "n"), v1alpha1.Target{})}, says: "denied to every rule"},
		"as the authorizer elsewhere":  {self: self, allow: []v1alpha1.Rule{lead(fixed("t", "authorizer"), v1alpha1.Target{})}, says: "denied to every rule"},
		"chooses among named ones":     {allow: []v1alpha1.Rule{choose("team-a", "team-b")}, says: "the cluster chooses"},
		"chooses among a pattern":      {allow: []v1alpha1.Rule{choose("team-*")}, says: "the cluster chooses", want: true},
		"chooses, one is a pattern":    {allow: []v1alpha1.Rule{choose("team-a", "x-*")}, says: "the cluster chooses", want: true},
		"an API server's audience":     {allow: []v1alpha1.Rule{aud("https://kubernetes.default.svc")}, says: "API server", want: true},
		"an API server's short one":    {allow: []v1alpha1.Rule{aud("kubernetes")}, says: "API server", want: true},
		"another API server's":         {allow: []v1alpha1.Rule{aud("api")}, says: "API server", want: true},
		"an API server's name":         {allow: []v1alpha1.Rule{aud("kubernetes.default")}, says: "API server", want: true},
		"an audience of its own":       {allow: []v1alpha1.Rule{aud("https://hub.example.com")}, says: "API server"},
		"{namespace} told apart twice": {allow: []v1alpha1.Rule{{Namespaces: []string{"a-*"}, MapTo: fixed("{namespace}", "{namespace}")}}, says: "can become the same"},
		"names with dots of their own": {allow: []v1alpha1.Rule{{Namespaces: []string{"a"}, MapTo: fixed("t", "{name}.{namespace}.{name}")}}, says: "can become the same", want: true},
		"one name with dots":           {allow: []v1alpha1.Rule{{Namespaces: []string{"a-*"}, MapTo: fixed("t", "{namespace}.{name}")}}, says: "can become the same"},
	} {
		if got := messages(tc.self, tc.allow...); strings.Contains(got, tc.says) != tc.want {
			t.Errorf("%s: it says\n%s", name, got)
		}
	}
}

func TestADenialOfBothIsOne(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		deny v1alpha1.Denial
		want int
	}{
		{v1alpha1.Denial{TargetNamespaces: []string{"a"}, TargetServiceAccounts: []string{"b"}}, 0},
		{v1alpha1.Denial{TargetNamespaces: []string{"a"}}, 0},
		{v1alpha1.Denial{TargetServiceAccounts: []string{"b"}}, 0},
		{v1alpha1.Denial{}, 1},
	} {
		if got := policy.CheckDeny("deny", []v1alpha1.Denial{tc.deny}); len(got) != tc.want {
			t.Errorf("%+v: %v", tc.deny, got)
		}
	}
}

func TestAFindingInOneLine(t *testing.T) {
	t.Parallel()
	for want, f := range map[string]policy.Finding{
		"m":                        {Message: "m"},
		"p: m":                     {Message: "m", Path: "p"},
		"p: m; do it":              {Message: "m", Path: "p", Fix: "do it"},
		"clusters[0].x: m; do it.": {Message: "m", Path: "clusters[0].x", Fix: "do it."},
	} {
		if got := f.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestPatternsThatMeet: two rules that can lead to one account are found, however
// their patterns are written.
func TestPatternsThatMeet(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		a, b string
		meet bool
	}{
		{"*a", "ba", true},
		{"ba", "*a", true},
		{"*a", "*b", false},
		{"a*", "*b", true},
		{"a*c", "ab*", true},
		{"a*c", "b*", false},
		{"a", "a*", true},
		{"ab", "a*b*c", false},
		{"*", "x", true},
		{"x*y", "xy", true},
		{"x*y", "x", false},
		{"a*b*c", "a*c*c", true},
	} {
		rule := func(pattern string) v1alpha1.Rule {
			return v1alpha1.Rule{Namespaces: []string{"app"}, ServiceAccounts: []string{pattern}, MapTo: fixed("t", "{name}")}
		}
		findings := policy.LintTogether([]policy.Spec{
			{Cluster: "c1", Path: "clusters[0]", Allow: []v1alpha1.Rule{rule(tc.a)}},
			{Cluster: "c2", Path: "clusters[1]", Allow: []v1alpha1.Rule{rule(tc.b)}},
		})
		if (len(findings) > 0) != tc.meet {
			t.Errorf("%s and %s: %v", tc.a, tc.b, findings)
		}
	}
}

// TestHowFarARuleIsSpelledOut: the namespaces of a rule are known as long as it
// leads to no more than 4,096 accounts.
func TestHowFarARuleIsSpelledOut(t *testing.T) {
	t.Parallel()
	numbered := func(n int) []string {
		out := make([]string, n)
		for i := range out {
			out[i] = fmt.Sprintf("n%d", i)
		}
		return out
	}
	for accounts, known := range map[int]int{64: 64, 65: 0} {
		got := policy.Namespaces([]policy.Spec{{Cluster: "c1", Allow: []v1alpha1.Rule{{
			Namespaces: numbered(64), ServiceAccounts: numbered(accounts), MapTo: fixed("{namespace}", "{name}"),
		}}}})
		if len(got) != known || !slices.IsSorted(got) {
			t.Errorf("64 namespaces with %d accounts: %d are known", accounts, len(got))
		}
	}
	if got := policy.Namespaces([]policy.Spec{{Cluster: "c1", Allow: []v1alpha1.Rule{{
		Namespaces: []string{"kube-system", "b", "a"}, MapTo: fixed("{namespace}", "n"),
	}}}}); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("known are %v", got)
	}
}
