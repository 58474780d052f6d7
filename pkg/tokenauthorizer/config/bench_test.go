package config_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apis/tokenexchange/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/config"
)

// fleet is a file with many clusters, two keys each.
func fleet(tb testing.TB, clusters int) []byte {
	tb.Helper()
	var b strings.Builder
	b.WriteString("defaults: {audiences: [https://hub.example.com]}\nclusters:\n")
	for i := range clusters {
		keys := keySet(tb, fmt.Sprintf("one-%d", i))
		_, _ = fmt.Fprintf(&b, `- name: cluster%[1]d
  issuer: %[2]s
  keys:
    jwks: '%[3]s'
  allow:
  - {namespaces: [app-*], serviceAccounts: [eso, flux], mapTo: {namespace: cluster%[1]d, name: "{namespace}.{name}"}}
  - {namespaces: [ci], serviceAccounts: [bot], mapTo: {namespace: builds, name: cluster%[1]d}}
`, i, issuer, keys)
	}
	return []byte(b.String())
}

// BenchmarkParse is how long a reload of a large fleet takes.
func BenchmarkParse(b *testing.B) {
	data := fleet(b, 1000)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := config.Parse(data, config.Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkLint also compares all rules with each other.
func BenchmarkLint(b *testing.B) {
	cfg, err := config.Parse(fleet(b, 1000), config.Options{})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if findings := cfg.Lint(); len(findings) > 0 {
			b.Fatal(findings[0])
		}
	}
}

// largest is a policy at the limits of its API, whose rules have to be compared in full.
func largest() v1alpha1.TokenExchangePolicy {
	const most = 64
	p := allowed("largest", nil)
	p.UID, p.Generation, p.Spec.Allow = "largest", 1, nil
	patterns := func(prefix string) (all []string) {
		for i := range most {
			all = append(all, fmt.Sprintf("%s-%d-*", prefix, i))
		}
		return all
	}
	for i := range most {
		p.Spec.TargetNamespaces = append(p.Spec.TargetNamespaces, fmt.Sprintf("n-%d-*", i))
		p.Spec.Allow = append(p.Spec.Allow, v1alpha1.Rule{
			Namespaces: patterns("n"), ServiceAccounts: patterns("s"), MapTo: v1alpha1.Mapping{Namespace: "{namespace}", Name: "{name}"},
		})
	}
	return p
}

// BenchmarkHub is what a change costs when the hub has a policy of the largest size: of that
// policy, and of another one.
func BenchmarkHub(b *testing.B) {
	for name, changed := range map[string]int{"largest": 0, "another": 1} {
		b.Run(name, func(b *testing.B) {
			another := allowed("another", nil)
			another.UID, another.Generation = "another", 1
			hub, objects := &config.Hub{}, config.Objects{Policies: []v1alpha1.TokenExchangePolicy{largest(), another}}
			hub.Config(objects)
			for b.Loop() {
				objects.Policies[changed].Generation++
				if hub.Config(objects).Clusters[1].Policy == nil {
					b.Fatal("not made")
				}
			}
		})
	}
}
