package status_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/agent/status"
)

func claim(name string, labels ...string) clusterv1alpha1.ClusterClaim {
	c := clusterv1alpha1.ClusterClaim{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1alpha1.ClusterClaimSpec{Value: "v-" + name}}
	for _, l := range labels {
		c.Labels = map[string]string{l: ""}
	}
	return c
}

func TestClaimRules(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		rules status.ClaimRules
		give  []clusterv1alpha1.ClusterClaim
		want  []string
	}{
		{name: "no claims are an empty list", want: []string{}},
		{
			name:  "reserved ones come first and are never cut",
			rules: status.ClaimRules{MaxCustom: 1},
			give:  []clusterv1alpha1.ClusterClaim{claim("b"), claim("a"), claim("product.open-cluster-management.io"), claim("id.k8s.io")},
			want:  []string{"id.k8s.io", "product.open-cluster-management.io", "a"},
		},
		{
			name:  "a suffix reserves",
			rules: status.ClaimRules{ReservedSuffixes: []string{".example.com"}},
			give:  []clusterv1alpha1.ClusterClaim{claim("x.example.com"), claim("x.example.org")},
			want:  []string{"x.example.com"},
		},
		{
			name:  "what is for the managed cluster only stays there",
			rules: status.ClaimRules{MaxCustom: 5},
			give:  []clusterv1alpha1.ClusterClaim{claim("a", names.LabelSpokeOnly), claim("id.k8s.io", names.LabelSpokeOnly), claim("b")},
			want:  []string{"b"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			want := []clusterv1.ManagedClusterClaim{}
			for _, name := range tc.want {
				want = append(want, clusterv1.ManagedClusterClaim{Name: name, Value: "v-" + name})
			}
			if diff := cmp.Diff(want, tc.rules.Select(tc.give)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func FuzzClaimRules(f *testing.F) {
	f.Add(30, 20)
	f.Fuzz(func(t *testing.T, count, most int) {
		count, most = count&0xff, most&0xff
		var claims []clusterv1alpha1.ClusterClaim
		for i := range count {
			claims = append(claims, claim(fmt.Sprint("claim", i)))
		}
		if got := (status.ClaimRules{MaxCustom: most}).Select(claims); len(got) != min(count, most) {
			t.Errorf("%d of %d claims, at most %d", len(got), count, most)
		}
	})
}
