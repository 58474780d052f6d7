package manifest_test

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/manifest"
)

// deployment is the resource whose options are asked for.
func deployment() workv1.ResourceIdentifier {
	return workv1.ResourceIdentifier{Group: "apps", Resource: "deployments", Namespace: "shop", Name: "web-front"}
}

func configured(configs ...workv1.ManifestConfigOption) *workv1.ManifestWork {
	return &workv1.ManifestWork{Spec: workv1.ManifestWorkSpec{ManifestConfigs: configs}}
}

func strategy(kind workv1.UpdateStrategyType) *workv1.UpdateStrategy {
	return &workv1.UpdateStrategy{Type: kind}
}

func TestConfigMatchesResource(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		pattern workv1.ResourceIdentifier
		want    bool
	}{
		{"exactly", deployment(), true},
		{"not another group", workv1.ResourceIdentifier{Resource: "deployments", Namespace: "shop", Name: "web-front"}, false},
		{"not another resource", workv1.ResourceIdentifier{Group: "apps", Resource: "statefulsets", Namespace: "shop", Name: "web-front"}, false},
		{"not another name", workv1.ResourceIdentifier{Group: "apps", Resource: "deployments", Namespace: "shop", Name: "web"}, false},
		{"not another namespace", workv1.ResourceIdentifier{Group: "apps", Resource: "deployments", Name: "web-front"}, false},
		{"by any name", workv1.ResourceIdentifier{Group: "apps", Resource: "deployments", Namespace: "shop", Name: "*"}, true},
		{"by any name in any namespace", workv1.ResourceIdentifier{Group: "apps", Resource: "deployments", Namespace: "*", Name: "*"}, true},
		{"by the beginning of the name", workv1.ResourceIdentifier{Group: "apps", Resource: "deployments", Namespace: "shop", Name: "web-*"}, true},
		{"by the end of the namespace", workv1.ResourceIdentifier{Group: "apps", Resource: "deployments", Namespace: "*op", Name: "web-front"}, true},
		{"by the middle of the name", workv1.ResourceIdentifier{Group: "apps", Resource: "deployments", Namespace: "shop", Name: "w*-f*t"}, true},
		{"not by any group", workv1.ResourceIdentifier{Group: "*", Resource: "deployments", Namespace: "shop", Name: "web-front"}, false},
		{"not by any resource", workv1.ResourceIdentifier{Group: "apps", Resource: "*", Namespace: "shop", Name: "web-front"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			work := configured(workv1.ManifestConfigOption{ResourceIdentifier: c.pattern, UpdateStrategy: strategy(workv1.UpdateStrategyTypeReadOnly)})
			got := manifest.OptionsFor(work, deployment()).Update.Type == workv1.UpdateStrategyTypeReadOnly
			if got != c.want {
				t.Errorf("matches: %v", got)
			}
		})
	}
}

func TestAsteriskMatchesResourcesOfTheCluster(t *testing.T) {
	t.Parallel()
	work := configured(workv1.ManifestConfigOption{
		ResourceIdentifier: workv1.ResourceIdentifier{Resource: "namespaces", Name: "shop", Namespace: "*"},
		UpdateStrategy:     strategy(workv1.UpdateStrategyTypeCreateOnly),
	})
	got := manifest.OptionsFor(work, workv1.ResourceIdentifier{Resource: "namespaces", Name: "shop"})
	if got.Update.Type != workv1.UpdateStrategyTypeCreateOnly {
		t.Errorf("got %+v", got)
	}
}

func TestFirstMatchWinsForEachAspect(t *testing.T) {
	t.Parallel()
	feedback := []workv1.FeedbackRule{{Type: workv1.WellKnownStatusType}}
	conditions := []workv1.ConditionRule{{Condition: workv1.ManifestComplete, Type: workv1.WellKnownConditionsType}}
	all := workv1.ResourceIdentifier{Group: "apps", Resource: "deployments", Namespace: "*", Name: "*"}
	other := workv1.ResourceIdentifier{Group: "apps", Resource: "deployments", Namespace: "shop", Name: "back"}
	work := configured(
		workv1.ManifestConfigOption{ResourceIdentifier: other, UpdateStrategy: strategy(workv1.UpdateStrategyTypeReadOnly)},
		workv1.ManifestConfigOption{ResourceIdentifier: all, FeedbackRules: feedback},
		workv1.ManifestConfigOption{
			ResourceIdentifier: deployment(), UpdateStrategy: strategy(workv1.UpdateStrategyTypeCreateOnly),
			FeedbackRules: []workv1.FeedbackRule{{Type: workv1.JSONPathsType}}, FeedbackScrapeType: workv1.FeedbackWatchType,
		},
		workv1.ManifestConfigOption{
			ResourceIdentifier: all, UpdateStrategy: strategy(workv1.UpdateStrategyTypeReadOnly), ConditionRules: conditions,
			FeedbackScrapeType: workv1.FeedbackPollType,
		},
		workv1.ManifestConfigOption{ResourceIdentifier: all, ConditionRules: []workv1.ConditionRule{{Condition: "Other"}}},
	)
	want := manifest.Options{
		Update: *strategy(workv1.UpdateStrategyTypeCreateOnly), Feedback: feedback,
		Scrape: workv1.FeedbackWatchType, Conditions: conditions,
	}
	if diff := cmp.Diff(want, manifest.OptionsFor(work, deployment())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDefaultOptions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		strategy *workv1.UpdateStrategy
		want     workv1.UpdateStrategy
	}{
		{"Update without a strategy", nil, *strategy(workv1.UpdateStrategyTypeUpdate)},
		{"Update without a type", &workv1.UpdateStrategy{}, *strategy(workv1.UpdateStrategyTypeUpdate)},
		{
			"field manager work-agent for ServerSideApply", strategy(workv1.UpdateStrategyTypeServerSideApply),
			workv1.UpdateStrategy{
				Type:            workv1.UpdateStrategyTypeServerSideApply,
				ServerSideApply: &workv1.ServerSideApplyConfig{FieldManager: "work-agent"},
			},
		},
		{
			"the rest of the configuration stays",
			&workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeServerSideApply, ServerSideApply: &workv1.ServerSideApplyConfig{
				Force: true, IgnoreFields: []workv1.IgnoreField{{Condition: workv1.IgnoreFieldsConditionOnSpokeChange}},
			}},
			workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeServerSideApply, ServerSideApply: &workv1.ServerSideApplyConfig{
				Force: true, FieldManager: "work-agent", IgnoreFields: []workv1.IgnoreField{{Condition: workv1.IgnoreFieldsConditionOnSpokeChange}},
			}},
		},
		{
			"a field manager of one's own stays",
			&workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeServerSideApply, ServerSideApply: &workv1.ServerSideApplyConfig{FieldManager: "work-agent-shop"}},
			workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeServerSideApply, ServerSideApply: &workv1.ServerSideApplyConfig{FieldManager: "work-agent-shop"}},
		},
		{
			"only ServerSideApply has its configuration",
			&workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeCreateOnly, ServerSideApply: &workv1.ServerSideApplyConfig{Force: true}},
			*strategy(workv1.UpdateStrategyTypeCreateOnly),
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			work := configured(workv1.ManifestConfigOption{ResourceIdentifier: deployment(), UpdateStrategy: c.strategy})
			before := work.DeepCopy()
			got := manifest.OptionsFor(work, deployment())
			if diff := cmp.Diff(manifest.Options{Update: c.want, Scrape: workv1.FeedbackPollType}, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, work); diff != "" {
				t.Errorf("the work changed (-before +after):\n%s", diff)
			}
		})
	}
}

func TestOrphaned(t *testing.T) {
	t.Parallel()
	rule := func(change func(*workv1.OrphaningRule)) *workv1.SelectivelyOrphan {
		r := workv1.OrphaningRule(deployment())
		change(&r)
		return &workv1.SelectivelyOrphan{OrphaningRules: []workv1.OrphaningRule{{Resource: "secrets", Name: "a"}, r}}
	}
	same := func(*workv1.OrphaningRule) {}
	for _, c := range []struct {
		name   string
		option *workv1.DeleteOption
		want   bool
	}{
		{"nothing without an option", nil, false},
		{"nothing with Foreground", &workv1.DeleteOption{PropagationPolicy: workv1.DeletePropagationPolicyTypeForeground, SelectivelyOrphan: rule(same)}, false},
		{"everything with Orphan", &workv1.DeleteOption{PropagationPolicy: workv1.DeletePropagationPolicyTypeOrphan}, true},
		{"what a rule names", &workv1.DeleteOption{PropagationPolicy: workv1.DeletePropagationPolicyTypeSelectivelyOrphan, SelectivelyOrphan: rule(same)}, true},
		{"nothing without rules", &workv1.DeleteOption{PropagationPolicy: workv1.DeletePropagationPolicyTypeSelectivelyOrphan}, false},
		{"not another group", &workv1.DeleteOption{
			PropagationPolicy: workv1.DeletePropagationPolicyTypeSelectivelyOrphan,
			SelectivelyOrphan: rule(func(r *workv1.OrphaningRule) { r.Group = "" }),
		}, false},
		{"not another resource", &workv1.DeleteOption{
			PropagationPolicy: workv1.DeletePropagationPolicyTypeSelectivelyOrphan,
			SelectivelyOrphan: rule(func(r *workv1.OrphaningRule) { r.Resource = "pods" }),
		}, false},
		{"not another namespace", &workv1.DeleteOption{
			PropagationPolicy: workv1.DeletePropagationPolicyTypeSelectivelyOrphan,
			SelectivelyOrphan: rule(func(r *workv1.OrphaningRule) { r.Namespace = "" }),
		}, false},
		{"not another name", &workv1.DeleteOption{
			PropagationPolicy: workv1.DeletePropagationPolicyTypeSelectivelyOrphan,
			SelectivelyOrphan: rule(func(r *workv1.OrphaningRule) { r.Name = "web" }),
		}, false},
		{"rules have no asterisks", &workv1.DeleteOption{
			PropagationPolicy: workv1.DeletePropagationPolicyTypeSelectivelyOrphan,
			SelectivelyOrphan: rule(func(r *workv1.OrphaningRule) { r.Name = "*" }),
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			work := &workv1.ManifestWork{Spec: workv1.ManifestWorkSpec{DeleteOption: c.option}}
			if got := manifest.Orphaned(work, deployment()); got != c.want {
				t.Errorf("orphaned: %v", got)
			}
		})
	}
}

// FuzzAsterisks compares the match with a regular expression in which only * is special.
func FuzzAsterisks(f *testing.F) {
	f.Add("web-*", "web-front")
	f.Add("*a*a*", "aa")
	f.Add("a*a", "a")
	f.Add("**", "")
	f.Add("w.b", "web")
	f.Fuzz(func(t *testing.T, pattern, name string) {
		work := configured(workv1.ManifestConfigOption{
			ResourceIdentifier: workv1.ResourceIdentifier{Resource: "pods", Name: pattern},
			UpdateStrategy:     strategy(workv1.UpdateStrategyTypeReadOnly),
		})
		options := manifest.OptionsFor(work, workv1.ResourceIdentifier{Resource: "pods", Name: name})
		expression := `(?s)\A` + strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, `.*`) + `\z`
		compiled, err := regexp.Compile(expression)
		if err != nil || !utf8.ValidString(name) {
			return
		}
		got, want := options.Update.Type == workv1.UpdateStrategyTypeReadOnly, compiled.MatchString(name)
		if got != want {
			t.Errorf("%q matches %q: %v", pattern, name, got)
		}
	})
}
