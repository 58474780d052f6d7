package config_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz/config"
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
