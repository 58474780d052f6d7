package registry_test

import (
	"slices"
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/registry"
)

func TestNormalize(t *testing.T) {
	t.Parallel()
	for _, host := range []string{"registry.example.com", "registry:5000", "10.0.0.1:443", "[fd00::1]:5000", "[fd00::1]", "localhost", "r.example.com/team/images", "*.example.com"} {
		if _, err := registry.Normalize([]string{host}); err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
	for _, host := range []string{"", "https://registry.example.com", "registry:", "registry:http", "a b", "[fd00::1", "_", "user@registry", "registry?x", "registry:99x"} {
		if _, err := registry.Normalize([]string{"registry.example.com", host}); err == nil {
			t.Errorf("%q is accepted", host)
		}
	}
}

// TestDuplicateHostsAreOne: a list that differs in order and repetition only is no
// change, so that no pull secret is written for it.
func TestDuplicateHostsAreOne(t *testing.T) {
	t.Parallel()
	calls := 0
	hosts, err := registry.NewHosts([]string{"b", "a", "b"}, func() { calls++ })
	if err != nil {
		t.Fatal(err)
	}
	if got := hosts.List(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("hosts %v", got)
	}
	if hosts.Extend([]string{"b", "a"}) || calls != 0 {
		t.Error("the same hosts are a change")
	}
	if !hosts.Extend([]string{"c"}) || calls != 1 || !slices.Equal(hosts.List(), []string{"a", "b", "c"}) {
		t.Errorf("hosts %v after %d calls", hosts.List(), calls)
	}
	if !hosts.Extend(nil) || calls != 2 || !slices.Equal(hosts.List(), []string{"a", "b"}) {
		t.Errorf("hosts %v after %d calls", hosts.List(), calls)
	}
}
