package keytrust_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/keytrust"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/issuer"
)

const kubernetes = "https://kubernetes.default.svc.cluster.local"

func member(name string) keytrust.Cluster {
	return keytrust.Cluster{Name: name, UID: "uid-of-" + name, Accepted: true, Joined: true}
}

func publishes(t *testing.T, name string, keys ...*issuer.Key) keytrust.Candidate {
	t.Helper()
	c := member(name)
	return keytrust.Candidate{Cluster: c, Data: issuer.Published(t, kubernetes, c.Name, c.UID, keys...)}
}

// everybody returns all candidates for every key, which is more than is asked for.
func everybody(all ...keytrust.Candidate) func(string) []keytrust.Candidate {
	return func(string) []keytrust.Candidate { return all }
}

// TestOnlyWhatIsProvenCounts: a proof is of one key, one issuer and one
// membership of one cluster, and made by the cluster's agent.
func TestOnlyWhatIsProvenCounts(t *testing.T) {
	t.Parallel()
	key, other := issuer.NewKey(t, "ES256"), issuer.NewKey(t, "ES256")
	self := member("c1")
	forged := *other
	forged.ID = key.ID
	claim := func(name string, value any) map[string]any { return map[string]any{name: value} }
	for name, tc := range map[string]struct {
		proof string
		valid bool
	}{
		"none":               {"", false},
		"not a token":        {"a.b.c", false},
		"right":              {key.Proof(t, kubernetes, self.Name, self.UID), true},
		"right, among junk":  {"x\n\n" + key.Proof(t, kubernetes, self.Name, self.UID) + "\r\ny", true},
		"another key signed": {forged.Proof(t, kubernetes, self.Name, self.UID), false},
		"another cluster's":  {key.Proof(t, kubernetes, "c2", self.UID), false},
		"an earlier cluster's of the same name, or another hub's": {key.Proof(t, kubernetes, self.Name, "uid-of-before"), false},
		"another issuer":                 {key.Proof(t, "https://elsewhere", self.Name, self.UID), false},
		"two audiences":                  {key.Proof(t, kubernetes, self.Name, self.UID, claim("aud", []string{self.Audience(), "https://hub"})), false},
		"a workload's token":             {key.Token(t, issuer.BoundClaims(kubernetes, "app", "web", time.Unix(0, 0))), false},
		"a tenant's, for our audience":   {key.Proof(t, kubernetes, self.Name, self.UID, claim("sub", names.ServiceAccountUser("tenant", "klusterlet-registration-sa"))), false},
		"an add-on's":                    {key.Proof(t, kubernetes, self.Name, self.UID, claim("sub", names.ServiceAccountUser("open-cluster-management-agent-addon", "klusterlet-registration-sa"))), false},
		"a publisher's beside the agent": {key.Proof(t, kubernetes, self.Name, self.UID, claim("sub", names.ServiceAccountUser("open-cluster-management-agent", "publisher"))), true},
		"another's in another namespace": {key.Proof(t, kubernetes, self.Name, self.UID, claim("sub", names.ServiceAccountUser("open-cluster-management-two", "default"))), false},
		"a second agent's":               {key.Proof(t, kubernetes, self.Name, self.UID, claim("sub", names.ServiceAccountUser("open-cluster-management-two", "two-registration-sa"))), true},
		"a person's":                     {key.Proof(t, kubernetes, self.Name, self.UID, claim("sub", "open-cluster-management-agent:x")), false},
		"behind too much":                {strings.Repeat("x\n", 1000) + key.Proof(t, kubernetes, self.Name, self.UID), false},
	} {
		data := issuer.Published(t, kubernetes, self.Name, self.UID, key)
		data[names.IssuerKeyProofs] = tc.proof
		p, err := keytrust.Read(self, data)
		if err != nil {
			t.Fatal(err)
		}
		if holds := len(p.Keys) == 1; holds != tc.valid || holds == slices.Contains(p.Unproven, key.ID) {
			t.Errorf("%s: proven %v", name, holds)
		}
		d := keytrust.Decide(keytrust.Candidate{Cluster: self, Data: data}, everybody())
		if d.Trusted() != tc.valid || (len(d.Counting) == 1) != tc.valid || !tc.valid && d.Rejection.Reason != names.ReasonKeysUnproven {
			t.Errorf("%s: %+v", name, d)
		}
	}
	if p, err := keytrust.Read(keytrust.Cluster{}, issuer.Published(t, kubernetes, "", "", key)); err != nil || len(p.Keys) != 0 {
		t.Errorf("proven for a cluster that does not exist: %+v, %v", p, err)
	}
}

// TestACopiedKeyHarmsNoCluster: a cluster that publishes the keys of another one,
// even with that one's proofs, changes nothing for it and gets nothing.
func TestACopiedKeyHarmsNoCluster(t *testing.T) {
	t.Parallel()
	key, own := issuer.NewKey(t, "RS256"), issuer.NewKey(t, "ES256")
	victim, thief := publishes(t, "victim", key), publishes(t, "thief", own)
	thief.Data[names.IssuerKeyJWKS] = string(issuer.JWKS(t, key, own))
	thief.Data[names.IssuerKeyProofs] += "\n" + victim.Data[names.IssuerKeyProofs]
	all := everybody(victim, thief)
	if d := keytrust.Decide(victim, all); !d.Trusted() || len(d.Counting) != 1 {
		t.Errorf("the victim: %+v", d)
	}
	d := keytrust.Decide(thief, all)
	if len(d.Counting) != 1 || d.Counting[0].ID != own.ID || !slices.Equal(d.Unproven, []string{key.ID}) {
		t.Errorf("the thief: %+v", d)
	}
	if !strings.Contains(d.Message, key.ID+" does not count") {
		t.Errorf("it says %q", d.Message)
	}
}

// TestAKeyOfTwoCountsForNeither, as of clusters that were made from one image.
func TestAKeyOfTwoCountsForNeither(t *testing.T) {
	t.Parallel()
	key, own := issuer.NewKey(t, "ES256"), issuer.NewKey(t, "ES256")
	a, b := publishes(t, "a", own, key), publishes(t, "b", key)
	if d := keytrust.Decide(a, everybody(a, b)); d.Rejection.Reason != names.ReasonKeysShared || len(d.Counting) != 1 || d.Counting[0].ID != own.ID ||
		!strings.Contains(d.Message, "Cluster b ") || !strings.Contains(d.Message, own.ID) {
		t.Errorf("a: %+v", d)
	}
	if d := keytrust.Decide(b, everybody(a, b)); d.Rejection.Reason != names.ReasonKeysShared || len(d.Counting) != 0 {
		t.Errorf("b: %+v", d)
	}
	for name, change := range map[string]func(*keytrust.Candidate){
		"denied":     func(c *keytrust.Candidate) { c.Cluster.Accepted = false },
		"detaching":  func(c *keytrust.Candidate) { c.Cluster.Detaching = true },
		"not joined": func(c *keytrust.Candidate) { c.Cluster.Joined = false },
		"gone":       func(c *keytrust.Candidate) { c.Cluster = keytrust.Cluster{} },
		"broken":     func(c *keytrust.Candidate) { c.Data = map[string]string{names.IssuerKeyJWKS: "{"} },
		"unproven": func(c *keytrust.Candidate) {
			c.Data = maps.Clone(c.Data)
			delete(c.Data, names.IssuerKeyProofs)
		},
	} {
		rival := b
		change(&rival)
		if d := keytrust.Decide(a, everybody(a, rival)); !d.Trusted() || len(d.Counting) != 2 {
			t.Errorf("beside a rival that is %s: %+v", name, d)
		}
		if d := keytrust.Decide(rival, everybody(a, rival)); d.Trusted() || len(d.Counting) != 0 {
			t.Errorf("a cluster that is %s: %+v", name, d)
		}
	}
}

func TestWhatCannotBeUsed(t *testing.T) {
	t.Parallel()
	good := publishes(t, "c1", issuer.NewKey(t, "ES256"))
	for name, change := range map[string]map[string]string{
		"no issuer":   {names.IssuerKeyIssuer: ""},
		"a line more": {names.IssuerKeyIssuer: "https://a\nb"},
		"too long":    {names.IssuerKeyIssuer: strings.Repeat("a", keytrust.MaxIssuerBytes+1)},
		"no set":      {names.IssuerKeyJWKS: ""},
	} {
		data := maps.Clone(good.Data)
		maps.Copy(data, change)
		if d := keytrust.Decide(keytrust.Candidate{Cluster: good.Cluster, Data: data}, everybody()); d.Rejection.Reason != names.ReasonKeysInvalid {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

// TestOneRuleForAllSources goes through every pair of sources, with one issuer
// and with two.
func TestOneRuleForAllSources(t *testing.T) {
	t.Parallel()
	const here, there = "https://here", "https://there"
	for _, tc := range []struct {
		a, b           keytrust.Support
		oneIssuer      string // Who has the key: "a", "b", or nobody.
		aOfTwo, bOfTwo bool
	}{
		{keytrust.Named, keytrust.Named, "", true, true},
		{keytrust.Named, keytrust.Proven, "a", true, false},
		{keytrust.Named, keytrust.Served, "a", true, true},
		{keytrust.Proven, keytrust.Proven, "", false, false},
		{keytrust.Proven, keytrust.Served, "", true, true},
		{keytrust.Served, keytrust.Served, "", true, true},
	} {
		claim := func(cluster string, support keytrust.Support, issuer string) keytrust.Claim {
			return keytrust.Claim{Cluster: cluster, Issuers: []string{issuer}, Support: support}
		}
		a, b := claim("a", tc.a, here), claim("b", tc.b, here)
		all := []keytrust.Claim{a, b}
		if a.Refused(here, all) == (tc.oneIssuer == "a") || b.Refused(here, all) == (tc.oneIssuer == "b") {
			t.Errorf("%v and %v with one issuer: refused %v, %v", tc.a, tc.b, a.Refused(here, all), b.Refused(here, all))
		}
		b = claim("b", tc.b, there)
		all = []keytrust.Claim{b, a}
		if a.Refused(here, all) == tc.aOfTwo || b.Refused(there, all) == tc.bOfTwo {
			t.Errorf("%v and %v with two issuers: refused %v, %v", tc.a, tc.b, a.Refused(here, all), b.Refused(there, all))
		}
	}
}
