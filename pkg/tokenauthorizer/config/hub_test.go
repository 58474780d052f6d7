package config_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apis/tokenexchange/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/config"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/jwks"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/policy"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/subject"
)

func allowed(cluster string, change func(*v1alpha1.TokenExchangePolicySpec)) v1alpha1.TokenExchangePolicy {
	p := v1alpha1.TokenExchangePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: v1alpha1.Name}}
	p.Spec.Audiences = []string{"a"}
	p.Spec.Allow = []v1alpha1.Rule{{
		Namespaces: []string{"app"}, ServiceAccounts: []string{"web"}, MapTo: v1alpha1.Mapping{Namespace: "edge", Name: "web"},
	}}
	if change != nil {
		change(&p.Spec)
	}
	return p
}

func set(t *testing.T, keys string) *v1alpha1.Keys {
	t.Helper()
	out := &v1alpha1.Keys{JWKS: &v1alpha1.KeySet{}}
	if err := json.Unmarshal([]byte(keys), out.JWKS); err != nil {
		t.Fatal(err)
	}
	return out
}

// decide tells whether app/web of a cluster becomes edge/web.
func decide(c *config.Config, cluster string) bool {
	entry, ok := c.Cluster(cluster)
	if !ok {
		return false
	}
	grant, err := entry.Policy.Decide(subject.Identity{
		Cluster: cluster, Account: subject.Account{Namespace: "app", Name: "web", UID: "u"}, Token: subject.Token{Audiences: []string{"a"}},
	})
	return err == nil && grant.Target.Namespace == "edge" && grant.Target.Name == "web"
}

// TestOneBrokenObjectStopsNoOther: what cannot be used denies everything to its
// own cluster, and leaves all others as they are.
func TestOneBrokenObjectStopsNoOther(t *testing.T) {
	t.Parallel()
	shared := keySet(t, "k")
	for name, tc := range map[string]struct {
		change func(*v1alpha1.TokenExchangePolicySpec)
		want   string
	}{
		"no audience":           {func(s *v1alpha1.TokenExchangePolicySpec) { s.Audiences = nil }, "spec.audiences: no audience is named"},
		"a rule that chooses":   {func(s *v1alpha1.TokenExchangePolicySpec) { s.Allow[0].MapTo.Namespace = "{name}" }, "spec.allow[0].mapTo.namespace"},
		"a target that is shut": {func(s *v1alpha1.TokenExchangePolicySpec) { s.Allow[0].MapTo.Namespace = "kube-system" }, "spec.allow[0].mapTo: ServiceAccount kube-system/web"},
		"an age that is none":   {func(s *v1alpha1.TokenExchangePolicySpec) { s.MaxTokenAge = "x" }, "spec.maxTokenAge"},
		"keys over HTTP":        {func(s *v1alpha1.TokenExchangePolicySpec) { s.Issuer, s.Keys = "i", &v1alpha1.Keys{JWKSURI: "http://a"} }, "spec.keys: "},
		"keys that are none": {func(s *v1alpha1.TokenExchangePolicySpec) {
			s.Issuer, s.Keys = "i", set(t, `{"keys":[{"kty":"EC","kid":"k"}]}`)
		}, "spec.keys.jwks: the key set cannot be used"},
		"a key that is another's": {func(s *v1alpha1.TokenExchangePolicySpec) { s.Issuer, s.Keys = issuer, set(t, shared) }, "spec.keys: the key k is also a key of cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects := config.Objects{Policies: []v1alpha1.TokenExchangePolicy{
				allowed("good", func(s *v1alpha1.TokenExchangePolicySpec) { s.Issuer, s.Keys = issuer, set(t, keySet(t, "g")) }),
				allowed("bad", tc.change),
			}}
			if strings.Contains(tc.want, "also a key") {
				objects.Policies = append(objects.Policies, allowed("twin", tc.change))
			}
			got := config.FromHub(objects, config.Options{})
			bad, _ := got.Cluster("bad")
			if !policy.Failed(bad.Findings) || !slices.ContainsFunc(bad.Findings, func(f policy.Finding) bool { return strings.Contains(f.String(), tc.want) }) {
				t.Errorf("findings %v, want %q", bad.Findings, tc.want)
			}
			if decide(got, "bad") || !decide(got, "good") {
				t.Errorf("bad %v, good %v", decide(got, "bad"), decide(got, "good"))
			}
			if err := jwks.New(jwks.Config{Hub: true}).Configure(got.Keys(), nil); err != nil {
				t.Errorf("the key store: %v", err)
			}
		})
	}
}

// TestAChangeCostsItsOwnPolicy: what was made of a policy stays until that, or the defaults,
// change; and then it does not.
func TestAChangeCostsItsOwnPolicy(t *testing.T) {
	t.Parallel()
	version := func(p v1alpha1.TokenExchangePolicy, generation int64) v1alpha1.TokenExchangePolicy {
		p.UID, p.Generation = types.UID("uid-of-"+p.Namespace), generation
		return p
	}
	deny := func(p *v1alpha1.TokenExchangePolicySpec) { p.Allow = nil }
	hub := &config.Hub{}
	objects := config.Objects{Policies: []v1alpha1.TokenExchangePolicy{version(allowed("c1", nil), 1), version(allowed("c2", nil), 1)}}
	first := hub.Config(objects)
	objects.Policies[1] = version(allowed("c2", deny), 2)
	second := hub.Config(objects)
	if first.Clusters[0].Policy != second.Clusters[0].Policy || !decide(second, "c1") {
		t.Error("the policy that did not change was made again")
	}
	if decide(second, "c2") {
		t.Error("the change has no effect")
	}
	objects.Policies[0].UID, objects.Policies[0].Spec.Allow = "another", nil
	if decide(hub.Config(objects), "c1") {
		t.Error("a policy that was made again, with the generation of the one before, has no effect")
	}
	objects.Policies[0] = version(allowed("c1", nil), 1)
	objects.Defaults = &v1alpha1.TokenExchangeDefaults{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.Name, UID: "d", Generation: 1}}
	objects.Defaults.Spec.Deny = []v1alpha1.Denial{{TargetNamespaces: []string{"edge"}}}
	if !decide(hub.Config(config.Objects{Policies: objects.Policies}), "c1") || decide(hub.Config(objects), "c1") {
		t.Error("the defaults have no effect")
	}
	objects.Defaults.Generation, objects.Defaults.Spec.Deny = 2, nil
	if !decide(hub.Config(objects), "c1") {
		t.Error("the defaults' change has no effect")
	}
}

// TestNothingOpensByOmission: objects that say nothing, and a policy without
// rules where the defaults have some, allow nothing.
func TestNothingOpensByOmission(t *testing.T) {
	t.Parallel()
	everyone := &v1alpha1.TokenExchangeDefaults{}
	everyone.Spec.Audiences = []string{"a"}
	everyone.Spec.Allow = []v1alpha1.Rule{{Namespaces: []string{"app"}, ServiceAccounts: []string{"web"}, MapTo: v1alpha1.Mapping{Namespace: "edge", Name: "web"}}}
	for name, objects := range map[string]config.Objects{
		"nothing":              {},
		"an empty policy":      {Policies: []v1alpha1.TokenExchangePolicy{allowed("c", func(s *v1alpha1.TokenExchangePolicySpec) { *s = v1alpha1.TokenExchangePolicySpec{} })}},
		"no rules":             {Policies: []v1alpha1.TokenExchangePolicy{allowed("c", func(s *v1alpha1.TokenExchangePolicySpec) { s.Allow = nil })}, Defaults: everyone},
		"a broken policy":      {Policies: []v1alpha1.TokenExchangePolicy{allowed("c", func(s *v1alpha1.TokenExchangePolicySpec) { s.MaxTokenAge = "x" })}, Defaults: everyone},
		"only other clusters":  {Policies: []v1alpha1.TokenExchangePolicy{allowed("d", nil)}},
		"outside of the bound": {Policies: []v1alpha1.TokenExchangePolicy{allowed("c", func(s *v1alpha1.TokenExchangePolicySpec) { s.TargetNamespaces = []string{"other-*"} })}},
		"on the deny list": {
			Policies: []v1alpha1.TokenExchangePolicy{allowed("c", nil)},
			Defaults: &v1alpha1.TokenExchangeDefaults{Spec: v1alpha1.TokenExchangeDefaultsSpec{Deny: []v1alpha1.Denial{{TargetNamespaces: []string{"ed*"}}}}},
		},
		"defaults that cannot be used": {
			Policies: []v1alpha1.TokenExchangePolicy{allowed("c", nil)},
			Defaults: &v1alpha1.TokenExchangeDefaults{Spec: v1alpha1.TokenExchangeDefaultsSpec{Deny: []v1alpha1.Denial{{}}}},
		},
	} {
		if decide(config.FromHub(objects, config.Options{}), "c") {
			t.Errorf("%s: it is open", name)
		}
	}
	if got := config.FromHub(config.Objects{Defaults: everyone}, config.Options{}); !decide(got, "c") {
		t.Errorf("the defaults' rules do not hold: %+v", got.Findings)
	}
}

// TestDefaults: a policy has from the defaults what it does not say itself.
func TestDefaults(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	d := &v1alpha1.TokenExchangeDefaults{}
	d.Spec.TokenRules = v1alpha1.TokenRules{
		Audiences: []string{"default"}, MaxTokenAge: "30m", ClockSkew: "20s", RequireBoundPod: &yes,
		Limits: &v1alpha1.Limits{Cluster: &v1alpha1.Rate{PerSecond: 2, Burst: 7}},
	}
	got := config.FromHub(config.Objects{Defaults: d, Policies: []v1alpha1.TokenExchangePolicy{
		allowed("own", func(s *v1alpha1.TokenExchangePolicySpec) {
			s.MaxTokenAge, s.RequireBoundPod, s.AcceptLegacyTokens = "0s", &no, true
		}),
		allowed("inherits", func(s *v1alpha1.TokenExchangePolicySpec) { s.Audiences = nil }),
	}}, config.Options{Self: policy.Account{Namespace: "h", Name: "sa"}, Expiration: 20 * time.Minute})
	own, _ := got.Cluster("own")
	if own.Token.MaxAge != 0 || own.Token.Skew != 20*time.Second || own.Token.RequirePod || !own.Token.Legacy || own.Token.Audiences[0] != "a" ||
		!own.Keys.Source.Hub || own.Spec.Self.Name != "sa" || own.Spec.Expiration != 20*time.Minute {
		t.Errorf("own: %+v", own)
	}
	inherits, _ := got.Cluster("inherits")
	if inherits.Token.MaxAge != 30*time.Minute || !inherits.Token.RequirePod || inherits.Token.Audiences[0] != "default" || inherits.Limits.Cluster.Burst != 7 {
		t.Errorf("inherits: %+v", inherits)
	}
	if settings := got.Exchange(3); !slices.Equal(settings.Namespaces, []string{"edge"}) || settings.Clusters["inherits"].Generation != 3 {
		t.Errorf("%+v", settings)
	}
}
