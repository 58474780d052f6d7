package registry_test

import (
	"slices"
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/internal/content"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/registry"
)

func TestHosts(t *testing.T) {
	t.Parallel()
	for _, host := range []string{"registry.example.com", "registry:5000", "10.0.0.1:443", "[fd00::1]:5000", "[fd00::1]", "localhost", "r.example.com/team/images", "*.example.com"} {
		if _, err := registry.NewHosts([]string{host}, ""); err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
	for _, host := range []string{"", "https://registry.example.com", "registry:", "registry:http", "a b", "[fd00::1", "_", "user@registry", "registry?x", "registry:99x"} {
		if _, err := registry.NewHosts([]string{"registry.example.com", host}, ""); err == nil {
			t.Errorf("%q is accepted", host)
		}
	}
}

// TestDuplicateHostsAreOne: a list that differs in order and repetition only is no
// change, so that no pull secret is written for it.
func TestDuplicateHostsAreOne(t *testing.T) {
	t.Parallel()
	calls := 0
	hosts, err := registry.NewHosts([]string{"b", "a=x", "b"}, "y", func() { calls++ })
	if err != nil {
		t.Fatal(err)
	}
	a, b, c := content.Host{Name: "a", Audience: "x"}, content.Host{Name: "b", Audience: "y"}, content.Host{Name: "c"}
	for _, tc := range []struct {
		found []string
		want  []content.Host
		calls int
		wrong bool
	}{
		{want: []content.Host{a, b}},
		{found: []string{"b", "a=x", "b=y"}, want: []content.Host{a, b}},
		{found: []string{"c="}, want: []content.Host{a, b, c}, calls: 1},
		{found: []string{"a"}, want: []content.Host{a, b, c}, calls: 1, wrong: true},
		{want: []content.Host{a, b}, calls: 2},
	} {
		changed, err := hosts.Extend(tc.found)
		if got := hosts.List(); !slices.Equal(got, tc.want) || calls != tc.calls || (err != nil) != tc.wrong {
			t.Errorf("after %q: %v with %d calls: %t, %v", tc.found, got, calls, changed, err)
		}
	}
}
