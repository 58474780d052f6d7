package rulestore_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apis/tokenexchange/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/scheme"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/config"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/policy"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/rulestore"
)

// rule leads to one ServiceAccount of the hub.
func rule(to string) v1alpha1.Rule {
	return v1alpha1.Rule{
		Namespaces: []string{"app"}, ServiceAccounts: []string{"web"}, Audiences: []string{"hub"},
		MapTo: v1alpha1.Mapping{Namespace: "builds", Name: to},
	}
}

func storeWith(t *testing.T, objects ...runtime.Object) *rulestore.Store {
	t.Helper()
	return rulestore.OnHub(fake.NewClientBuilder().WithScheme(scheme.New()).WithRuntimeObjects(objects...).Build())
}

func policyOf(cluster string, rules ...v1alpha1.Rule) *v1alpha1.TokenExchangePolicy {
	p := &v1alpha1.TokenExchangePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: v1alpha1.Name}}
	p.Spec.Allow = rules
	return p
}

// TestAllow computes changes without writing them.
func TestAllow(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		stored  []runtime.Object
		cluster string
		changed bool
		want    []string
	}{
		"the first rule":       {nil, "c1", true, []string{"bot"}},
		"behind another rule":  {[]runtime.Object{policyOf("c1", rule("other"))}, "c1", true, []string{"other", "bot"}},
		"a rule that exists":   {[]runtime.Object{policyOf("c1", rule("bot"))}, "c1", false, []string{"bot"}},
		"another cluster's":    {[]runtime.Object{policyOf("c2", rule("bot"))}, "c1", true, []string{"bot"}},
		"rules of the default": {nil, policy.AnyCluster, true, []string{"bot"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := storeWith(t, tc.stored...)
			s.Mode = rulestore.Preview
			change, err := s.Allow(t.Context(), tc.cluster, []v1alpha1.Rule{rule("bot")})
			if err != nil {
				t.Fatal(err)
			}
			var rules []v1alpha1.Rule
			switch object := change.Object.(type) {
			case *v1alpha1.TokenExchangePolicy:
				rules = object.Spec.Allow
			case *v1alpha1.TokenExchangeDefaults:
				rules = object.Spec.Allow
			}
			var got []string
			for _, r := range rules {
				got = append(got, r.MapTo.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || change.Changed() != tc.changed {
				t.Errorf("changed %v, rules (-want +got):\n%s", change.Changed(), diff)
			}
			cfg, err := s.Config(t.Context(), s.Options())
			if err != nil {
				t.Fatal(err)
			}
			if _, stored := cfg.Cluster("c1"); stored != (len(tc.stored) > 0 && tc.cluster == "c1" && name != "another cluster's") {
				t.Errorf("a preview is stored: %v", cfg.Clusters)
			}
		})
	}
}

// TestAllowInvalid refuses rules that a token authorizer would not load.
func TestAllowInvalid(t *testing.T) {
	t.Parallel()
	denied := rule("bot")
	denied.MapTo.Namespace = "kube-system"
	for name, tc := range map[string]struct {
		stored  []runtime.Object
		already bool
	}{
		"valid so far":      {nil, false},
		"invalid as stored": {[]runtime.Object{policyOf("c1", denied)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			other := denied
			other.ServiceAccounts = []string{"api"}
			_, err := storeWith(t, tc.stored...).Allow(t.Context(), "c1", []v1alpha1.Rule{other})
			invalid, ok := errors.AsType[*rulestore.InvalidError](err)
			if !ok || len(invalid.Problems) == 0 || invalid.Already != tc.already {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestNothingToRead(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "missing.yaml")
	if _, err := rulestore.InFile(file).Config(t.Context(), config.Options{}); !strings.Contains(err.Error(), file) {
		t.Errorf("got %v", err)
	} else if _, ok := errors.AsType[*rulestore.FileMissingError](err); !ok {
		t.Errorf("%v is no FileMissingError", err)
	}
	old := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme.New()).Build(), interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, _ client.ObjectList, _ ...client.ListOption) error {
			return &apimeta.NoKindMatchError{}
		},
	})
	_, err := rulestore.OnHub(old).Config(t.Context(), config.Options{})
	if _, ok := errors.AsType[*rulestore.NotServedError](err); !ok {
		t.Errorf("%v is no NotServedError", err)
	}
}

func TestAudiences(t *testing.T) {
	t.Parallel()
	own := policyOf("c1")
	own.Spec.Audiences = []string{"own"}
	defaults := &v1alpha1.TokenExchangeDefaults{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.Name}}
	defaults.Spec.Audiences = []string{"default"}
	s := storeWith(t, own, policyOf("c2"), defaults)
	for cluster, want := range map[string]string{"c1": "own", "c2": "default", "c3": "default"} {
		if got, err := s.Audiences(t.Context(), cluster); err != nil || len(got) != 1 || got[0] != want {
			t.Errorf("%s: got %v, %v, want %s", cluster, got, err, want)
		}
	}
}

func TestForAccounts(t *testing.T) {
	t.Parallel()
	accounts := []types.NamespacedName{{Namespace: "a", Name: "1"}, {Namespace: "b", Name: "2"}, {Namespace: "a", Name: "3"}}
	var got []string
	for _, r := range rulestore.ForAccounts(v1alpha1.Rule{}, accounts) {
		got = append(got, strings.Join(r.Namespaces, ",")+"/"+strings.Join(r.ServiceAccounts, ","))
	}
	if diff := cmp.Diff([]string{"a/1,3", "b/2"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestChangeYAML(t *testing.T) {
	t.Parallel()
	change := rulestore.Change{Object: policyOf("c1", rule("bot"))}
	data, err := change.YAML()
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"kind: TokenExchangePolicy\n", "  namespace: c1\n", "      name: bot\n"} {
		if !strings.Contains(string(data), part) {
			t.Errorf("%q is not in:\n%s", part, data)
		}
	}
	if strings.Contains(string(data), "status") {
		t.Errorf("the status is in:\n%s", data)
	}
	if got := change.String(); got != "TokenExchangePolicy c1/"+v1alpha1.Name {
		t.Errorf("it is called %s", got)
	}
}
