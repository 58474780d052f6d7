package registry_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
	if got := hosts.List(); !slices.Equal(got, []content.Host{a, b}) {
		t.Errorf("hosts %v", got)
	}
	source := hosts.NewSource()
	if got := hosts.List(); len(got) != 0 {
		t.Errorf("hosts %v before the source has reported", got)
	}
	for _, tc := range []struct {
		found []string
		want  []content.Host
		calls int
		wrong bool
	}{
		{want: []content.Host{a, b}, calls: 1},
		{found: []string{"b", "a=x", "b=y"}, want: []content.Host{a, b}, calls: 1},
		{found: []string{"c="}, want: []content.Host{a, b, c}, calls: 2},
		{found: []string{"a"}, want: []content.Host{a, b, c}, calls: 2, wrong: true},
		{found: []string{"https://"}, want: []content.Host{a, b, c}, calls: 2, wrong: true},
		{want: []content.Host{a, b}, calls: 3},
	} {
		err := source.Report(t.Context(), tc.found...)
		if got := hosts.List(); !slices.Equal(got, tc.want) || calls != tc.calls || (err != nil) != tc.wrong {
			t.Errorf("after %q: %v with %d calls, %v", tc.found, got, calls, err)
		}
	}
}

// FuzzHosts: of whatever a source finds, the list has each host once, in order, as
// a kubelet can read it; what cannot be used changes nothing, and another order of
// the same is no change.
func FuzzHosts(f *testing.F) {
	f.Add("b.example.com a.example.com=x\n[fd00::1]:5000 b.example.com")
	f.Add("a=x a=y")
	f.Add("https:// %zz a/%2e%2e/b user@a")
	f.Fuzz(func(t *testing.T, text string) {
		calls := 0
		hosts, err := registry.NewHosts([]string{"configured.example.com"}, "y", func() { calls++ })
		if err != nil {
			t.Fatal(err)
		}
		source, found := hosts.NewSource(), strings.Fields(text)
		err = source.Report(t.Context(), found...)
		list := hosts.List()
		if err != nil && len(list) != 1 {
			t.Errorf("%v, and hosts %v", err, list)
		}
		for i, host := range list {
			u, err := url.Parse("https://" + host.Name)
			if err != nil || u.Host == "" || u.User != nil {
				t.Errorf("%q is no host: %v", host.Name, err)
			}
			if i > 0 && list[i-1].Name >= host.Name {
				t.Errorf("%q before %q", list[i-1].Name, host.Name)
			}
		}
		slices.Reverse(found)
		if again := source.Report(t.Context(), found...); (again == nil) != (err == nil) || calls != 1 {
			t.Errorf("%v, then %v with %d calls", err, again, calls)
		}
	})
}

// TestSourcesAreAwaited: there are no hosts before all sources have reported, and
// then those of all; one that begins with hosts that cannot be used has none.
func TestSourcesAreAwaited(t *testing.T) {
	t.Parallel()
	hosts, err := registry.NewHosts([]string{"a"}, "")
	if err != nil {
		t.Fatal(err)
	}
	first, second := hosts.NewSource(), hosts.NewSource()
	if err := first.Report(t.Context(), "b"); err != nil || len(hosts.List()) != 0 {
		t.Errorf("%v, %v", hosts.List(), err)
	}
	if err := second.Report(t.Context(), "https://"); err == nil || len(hosts.List()) != 2 {
		t.Errorf("%v, %v", hosts.List(), err)
	}
}

// TestHostsOfAService: its DNS names and addresses with the port, and without it
// where that is a default; none without an address.
func TestHostsOfAService(t *testing.T) {
	t.Parallel()
	service := func(ips []string, ports ...int32) *corev1.Service {
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "r"}}
		s.Spec.ClusterIPs = ips
		if len(ips) > 0 {
			s.Spec.ClusterIP = ips[0]
		}
		for _, port := range ports {
			s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Port: port})
		}
		return s
	}
	for _, tc := range []struct {
		name    string
		service *corev1.Service
		port    int32
		want    []string
	}{
		{name: "one address", service: service([]string{"10.0.0.1"}, 5000), want: []string{"r.n.svc:5000", "r.n.svc.example:5000", "10.0.0.1:5000"}},
		{name: "two families", service: service([]string{"10.0.0.1", "fd00::1"}, 5000), want: []string{"r.n.svc:5000", "r.n.svc.example:5000", "10.0.0.1:5000", "[fd00::1]:5000"}},
		{name: "a default port", service: service([]string{"fd00::1"}, 443), want: []string{"r.n.svc:443", "r.n.svc", "r.n.svc.example:443", "r.n.svc.example", "[fd00::1]:443", "[fd00::1]"}},
		{name: "headless", service: service([]string{"None"}, 80), want: []string{"r.n.svc:80", "r.n.svc", "r.n.svc.example:80", "r.n.svc.example"}},
		{name: "one of two ports", service: service([]string{"10.0.0.1"}, 5000, 9090), port: 5000, want: []string{"r.n.svc:5000", "r.n.svc.example:5000", "10.0.0.1:5000"}},
		{name: "another port", service: service([]string{"10.0.0.1"}, 9090), port: 5000},
		{name: "without an address", service: service(nil, 5000)},
		{name: "gone", service: &corev1.Service{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got := registry.Service{Port: tc.port}.Hosts(tc.service, "example")
			if !slices.Equal(got, tc.want) {
				t.Errorf("%q, want %q", got, tc.want)
			}
			hosts, _ := registry.NewHosts(nil, "")
			if err := hosts.NewSource().Report(t.Context(), got...); err != nil {
				t.Error(err)
			}
		})
	}
}
