package addon_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/interrupt"
)

func fleet(name string, change ...func(*addonv1beta1.ClusterManagementAddOn)) *addonv1beta1.ClusterManagementAddOn {
	cma := &addonv1beta1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: name}}
	cma.Spec.InstallStrategy.Type = addonv1beta1.AddonInstallStrategyManual
	for _, c := range change {
		c(cma)
	}
	return cma
}

// placed installs an add-on by placements in the namespace default.
func placed(names ...string) func(*addonv1beta1.ClusterManagementAddOn) {
	return func(cma *addonv1beta1.ClusterManagementAddOn) {
		cma.Spec.InstallStrategy.Type = addonv1beta1.AddonInstallStrategyPlacements
		for _, name := range names {
			cma.Spec.InstallStrategy.Placements = append(cma.Spec.InstallStrategy.Placements, addonv1beta1.PlacementStrategy{
				PlacementRef:    addonv1beta1.PlacementRef{Namespace: "default", Name: name},
				RolloutStrategy: clusterv1alpha1.RolloutStrategy{Type: clusterv1alpha1.All},
			})
		}
	}
}

// changeFleet changes a ClusterManagementAddOn, whose status changes at the same time.
func (e *env) changeFleet(t *testing.T, name string, change func(*addonv1beta1.ClusterManagementAddOn)) {
	t.Helper()
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		cma := fleet(name)
		e.get(t.Context(), t, cma)
		change(cma)
		return e.admin.Update(t.Context(), cma)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// decide makes or changes the decision of a placement.
func (e *env) decide(t *testing.T, placement string, clusters ...string) {
	t.Helper()
	decision := &clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: placement + "-decision-1", Labels: map[string]string{clusterv1beta1.PlacementLabel: placement},
	}}
	if !e.exists(t.Context(), t, decision) {
		e.create(t, decision)
	}
	decision.Status.Decisions = []clusterv1beta1.ClusterDecision{}
	for _, cluster := range clusters {
		decision.Status.Decisions = append(decision.Status.Decisions, clusterv1beta1.ClusterDecision{ClusterName: cluster})
	}
	if err := e.admin.Status().Update(t.Context(), decision); err != nil {
		t.Fatal(err)
	}
}

// installed returns the clusters that have an add-on.
func (e *env) installed(ctx context.Context, t *testing.T, name string) []string {
	t.Helper()
	var list addonv1beta1.ManagedClusterAddOnList
	if err := e.admin.List(ctx, &list); err != nil && ctx.Err() == nil {
		t.Fatal(err)
	}
	var clusters []string
	for i := range list.Items {
		if list.Items[i].Name == name {
			clusters = append(clusters, list.Items[i].Namespace)
		}
	}
	slices.Sort(clusters)
	return clusters
}

func (e *env) awaitInstalled(t *testing.T, name string, want ...string) {
	t.Helper()
	var got []string
	eventually(t, fmt.Sprintf("%s is in %v", name, want), func(ctx context.Context) (bool, error) {
		got = e.installed(ctx, t, name)
		return slices.Equal(want, got), nil
	}, func() any { return got })
}

func (e *env) awaitConfigured(t *testing.T, cluster, name string, status metav1.ConditionStatus, reason string) *addonv1beta1.ManagedClusterAddOn {
	t.Helper()
	var found *addonv1beta1.ManagedClusterAddOn
	e.awaitAddOn(t, cluster, name, "is "+reason, func(a *addonv1beta1.ManagedClusterAddOn) bool {
		condition := apimeta.FindStatusCondition(a.Status.Conditions, addonv1beta1.ManagedClusterAddOnConditionConfigured)
		found = a
		return condition != nil && condition.Status == status && condition.Reason == reason
	})
	return found
}

func deploymentConfig(name, variable string) *addonv1beta1.AddOnDeploymentConfig {
	return &addonv1beta1.AddOnDeploymentConfig{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       addonv1beta1.AddOnDeploymentConfigSpec{CustomizedVariables: []addonv1beta1.CustomizedVariable{{Name: "X", Value: variable}}},
	}
}

var (
	deploymentConfigs = addonv1beta1.ConfigGroupResource{Group: "addon.open-cluster-management.io", Resource: "addondeploymentconfigs"}
	foreignConfigs    = addonv1beta1.ConfigGroupResource{Group: "example.com", Resource: "foos"}
)

func addOnConfig(kind addonv1beta1.ConfigGroupResource, name string) addonv1beta1.AddOnConfig {
	return addonv1beta1.AddOnConfig{ConfigGroupResource: kind, ConfigReferent: addonv1beta1.ConfigReferent{Namespace: "default", Name: name}}
}

// TestManagement installs, owns and configures add-ons, each test with a
// ClusterManagementAddOn and clusters of its own.
func TestManagement(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	writes := newWrites()
	e.start(t, writes.Wrap)
	for name, test := range map[string]func(*testing.T, *env, string, *interrupt.Writes){
		"manual":      testManual,
		"placements":  testPlacements,
		"undecided":   testUndecided,
		"annotations": testAnnotations,
		"configs":     testConfigs,
		"overrides":   testOverrides,
		"foreign":     testForeignConfigs,
		"selfmanaged": testSelfManaged,
		"rollout":     testRollout,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, e, name, writes)
		})
	}
}

func testManual(t *testing.T, e *env, name string, writes *interrupt.Writes) {
	t.Helper()
	e.cluster(t, "manual-c1")
	// The add-on is there before its ClusterManagementAddOn is.
	e.create(t, addOn("manual-c1", name), fleet(name))
	found := e.awaitConfigured(t, "manual-c1", name, metav1.ConditionTrue, names.ReasonConfigurationsConfigured)
	cma := fleet(name)
	e.get(t.Context(), t, cma)
	if diff := cmp.Diff([]metav1.OwnerReference{{
		APIVersion: "addon.open-cluster-management.io/v1beta1", Kind: "ClusterManagementAddOn", Name: name, UID: cma.UID,
	}}, found.OwnerReferences); diff != "" {
		t.Errorf("owners (-want +got):\n%s", diff)
	}
	// The cache may show the condition too late to keep from applying it again.
	if got := slices.Compact(writes.About("manual-c1")); len(got) != 2 {
		t.Errorf("%d writes:\n%s", len(got), strings.Join(got, "\n"))
	}
	// What somebody takes away comes back.
	e.merge(t, found, `{"metadata":{"ownerReferences":null}}`)
	eventually(t, "the add-on is owned again", func(ctx context.Context) (bool, error) {
		e.get(ctx, t, found)
		return len(found.OwnerReferences) == 1, nil
	})
	e.setCondition(t, "manual-c1", name, addonv1beta1.ManagedClusterAddOnConditionConfigured, "False")
	e.awaitConfigured(t, "manual-c1", name, metav1.ConditionTrue, names.ReasonConfigurationsConfigured)
	// One that was made anew owns the add-on again, before or after it is garbage.
	e.delete(t, cma)
	e.create(t, fleet(name))
	eventually(t, "the new one owns an add-on", func(ctx context.Context) (bool, error) {
		found, cma := addOn("manual-c1", name), fleet(name)
		e.get(ctx, t, cma)
		if !e.exists(ctx, t, found) {
			return true, nil
		}
		return slices.ContainsFunc(found.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == cma.UID }), nil
	})
}

func testPlacements(t *testing.T, e *env, name string, writes *interrupt.Writes) {
	t.Helper()
	for _, cluster := range []string{"placements-c1", "placements-c2", "placements-c3", "placements-c4"} {
		e.cluster(t, cluster)
	}
	e.cluster(t, "placements-later", func(c *clusterv1.ManagedCluster) { c.Spec.HubAcceptsClient = false })
	e.create(t, addOn("placements-c3", name)) // By hand.
	e.decide(t, "placements-a", "placements-c1", "placements-later", "placements-unknown")
	e.decide(t, "placements-b", "placements-c2")
	e.create(t, fleet(name, placed("placements-a", "placements-b")))
	e.awaitInstalled(t, name, "placements-c1", "placements-c2", "placements-c3")
	found := e.awaitConfigured(t, "placements-c1", name, metav1.ConditionTrue, names.ReasonConfigurationsConfigured)
	if owner := metav1.GetControllerOf(found); owner == nil || owner.Name != name {
		t.Errorf("owners %v", found.OwnerReferences)
	}
	// The cache may show the add-on too late to keep from making it again.
	if got := slices.Compact(writes.About("placements-c1")); len(got) != 2 {
		t.Errorf("%d writes:\n%s", len(got), strings.Join(got, "\n"))
	}
	e.merge(t, &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "placements-later"}}, `{"spec":{"hubAcceptsClient":true}}`)
	e.awaitInstalled(t, name, "placements-c1", "placements-c2", "placements-c3", "placements-later")
	e.decide(t, "placements-a", "placements-c4", "placements-c3")
	e.awaitInstalled(t, name, "placements-c2", "placements-c3", "placements-c4")
	// What somebody deletes by hand comes back, what somebody made by hand stays.
	e.delete(t, addOn("placements-c4", name))
	e.awaitInstalled(t, name, "placements-c2", "placements-c3", "placements-c4")
	e.decide(t, "placements-a")
	e.awaitInstalled(t, name, "placements-c2", "placements-c3")
	e.decide(t, "placements-b")
	e.awaitInstalled(t, name, "placements-c3")
}

func testUndecided(t *testing.T, e *env, name string, _ *interrupt.Writes) {
	t.Helper()
	e.cluster(t, "undecided-c1")
	e.cluster(t, "undecided-c2")
	e.decide(t, "undecided", "undecided-c1")
	e.create(t, fleet(name, placed("undecided")))
	e.awaitInstalled(t, name, "undecided-c1")
	// Without any decision, as after a restored backup, nothing is taken away.
	e.delete(t, &clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "undecided-decision-1"}})
	e.merge(t, fleet(name), `{"metadata":{"annotations":{"somebody":"was-here"}}}`)
	e.decide(t, "undecided2", "undecided-c2")
	e.changeFleet(t, name, placed("undecided2"))
	e.awaitInstalled(t, name, "undecided-c1", "undecided-c2")
}

func testAnnotations(t *testing.T, e *env, name string, _ *interrupt.Writes) {
	t.Helper()
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "annotations-c1"}}
	e.cluster(t, cluster.Name, func(c *clusterv1.ManagedCluster) {
		c.Annotations = map[string]string{"addon.open-cluster-management.io/hosting-cluster-name": "host", "other": "x"}
	})
	e.decide(t, "annotations", cluster.Name)
	e.create(t, fleet(name, placed("annotations")))
	await := func(want map[string]string) {
		t.Helper()
		var diff string
		eventually(t, "the annotations are as wanted", func(ctx context.Context) (bool, error) {
			found := addOn(cluster.Name, name)
			if !e.exists(ctx, t, found) {
				return false, nil
			}
			delete(found.Annotations, names.AnnotationCopied)
			diff = cmp.Diff(want, found.Annotations)
			return diff == "", nil
		}, func() any { return diff })
	}
	await(map[string]string{"addon.open-cluster-management.io/hosting-cluster-name": "host"})
	e.merge(t, addOn(cluster.Name, name), `{"metadata":{"annotations":{"addon.open-cluster-management.io/mine":"stays"}}}`)
	e.merge(t, cluster, `{"metadata":{"annotations":{"addon.open-cluster-management.io/hosting-cluster-name":null,"addon.open-cluster-management.io/y":"1"}}}`)
	await(map[string]string{"addon.open-cluster-management.io/mine": "stays", "addon.open-cluster-management.io/y": "1"})
	e.merge(t, cluster, `{"metadata":{"annotations":{"addon.open-cluster-management.io/y":null}}}`)
	await(map[string]string{"addon.open-cluster-management.io/mine": "stays"})
}

// awaitHashes waits until the references of an add-on have these hashes, by
// resource and name.
func (e *env) awaitHashes(t *testing.T, cluster, name string, want map[string]string) {
	t.Helper()
	var diff string
	e.awaitAddOn(t, cluster, name, "has its hashes", func(a *addonv1beta1.ManagedClusterAddOn) bool {
		got := map[string]string{}
		for _, r := range a.Status.ConfigReferences {
			if r.DesiredConfig != nil {
				got[r.Resource+"/"+r.DesiredConfig.Name] = r.DesiredConfig.SpecHash
			}
		}
		diff = cmp.Diff(want, got)
		return diff == ""
	})
}

func testConfigs(t *testing.T, e *env, name string, _ *interrupt.Writes) {
	t.Helper()
	e.cluster(t, "configs-c1")
	e.create(t, fleet(name, func(cma *addonv1beta1.ClusterManagementAddOn) {
		cma.Spec.DefaultConfigs = []addonv1beta1.AddOnConfig{
			addOnConfig(deploymentConfigs, "configs-d"),
			{ConfigGroupResource: foreignConfigs, ConfigReferent: addonv1beta1.ConfigReferent{Name: addonv1beta1.ReservedNoDefaultConfigName}},
		}
	}), addOn("configs-c1", name))
	e.awaitConfigured(t, "configs-c1", name, metav1.ConditionFalse, names.ReasonConfigurationsNotConfigured)
	e.create(t, deploymentConfig("configs-d", "1"))
	e.awaitConfigured(t, "configs-c1", name, metav1.ConditionTrue, names.ReasonConfigurationsConfigured)
	first := e.hash(t, "configs-d")
	e.awaitHashes(t, "configs-c1", name, map[string]string{"addondeploymentconfigs/configs-d": first})
	cma := fleet(name)
	e.get(t.Context(), t, cma)
	if got := cma.Status.DefaultConfigReferences; len(got) != 1 || got[0].DesiredConfig.SpecHash != first {
		t.Errorf("default references %+v", got)
	}
	e.merge(t, &addonv1beta1.AddOnDeploymentConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "configs-d"}},
		`{"spec":{"customizedVariables":[{"name":"X","value":"2"}]}}`)
	if second := e.hash(t, "configs-d"); second == first {
		t.Error("the hash did not change")
	}
	e.awaitHashes(t, "configs-c1", name, map[string]string{"addondeploymentconfigs/configs-d": e.hash(t, "configs-d")})
}

func testOverrides(t *testing.T, e *env, name string, _ *interrupt.Writes) {
	t.Helper()
	e.cluster(t, "overrides-c1")
	e.decide(t, "overrides-1", "overrides-c1")
	e.decide(t, "overrides-2", "overrides-c1")
	for _, config := range []string{"d", "p1", "p2", "own"} {
		e.create(t, deploymentConfig("overrides-"+config, config))
	}
	e.create(t, fleet(name, placed("overrides-1", "overrides-2"), func(cma *addonv1beta1.ClusterManagementAddOn) {
		cma.Spec.DefaultConfigs = []addonv1beta1.AddOnConfig{addOnConfig(deploymentConfigs, "overrides-d")}
		for i, config := range []string{"overrides-p1", "overrides-p2"} {
			cma.Spec.InstallStrategy.Placements[i].Configs = []addonv1beta1.AddOnConfig{addOnConfig(deploymentConfigs, config)}
		}
	}))
	hash := func(config string) map[string]string {
		return map[string]string{"addondeploymentconfigs/overrides-" + config: e.hash(t, "overrides-"+config)}
	}
	e.awaitHashes(t, "overrides-c1", name, hash("p2"))
	e.decide(t, "overrides-2")
	e.awaitHashes(t, "overrides-c1", name, hash("p1"))
	e.merge(t, addOn("overrides-c1", name), `{"spec":{"configs":[{"group":"addon.open-cluster-management.io","resource":"addondeploymentconfigs","namespace":"default","name":"overrides-own"}]}}`)
	e.awaitConfigured(t, "overrides-c1", name, metav1.ConditionFalse, names.ReasonConfigurationUnsupported)
	e.awaitHashes(t, "overrides-c1", name, hash("p1"))
	e.status(t, "overrides-c1", name, `{"supportedConfigs":[{"group":"addon.open-cluster-management.io","resource":"addondeploymentconfigs"}]}`)
	e.awaitConfigured(t, "overrides-c1", name, metav1.ConditionTrue, names.ReasonConfigurationsConfigured)
	e.awaitHashes(t, "overrides-c1", name, hash("own"))
	cma := fleet(name)
	e.get(t.Context(), t, cma)
	if got := cma.Status.InstallProgressions; len(got) != 2 || got[0].ConfigReferences[0].DesiredConfig.Name != "overrides-p1" {
		t.Errorf("progressions %+v", got)
	}
	e.merge(t, &addonv1beta1.AddOnDeploymentConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "overrides-own"}},
		`{"spec":{"customizedVariables":[{"name":"X","value":"new"}]}}`)
	e.awaitHashes(t, "overrides-c1", name, hash("own"))
}

func (e *env) status(t *testing.T, cluster, name, status string) {
	t.Helper()
	if err := e.admin.Status().Patch(t.Context(), addOn(cluster, name), client.RawPatch(types.MergePatchType, []byte(`{"status":`+status+`}`))); err != nil {
		t.Fatal(err)
	}
}

// testForeignConfigs: the hash of a kind that only the add-on's own manager
// knows comes from it, and is kept.
func testForeignConfigs(t *testing.T, e *env, name string, _ *interrupt.Writes) {
	t.Helper()
	e.cluster(t, "foreign-c1")
	e.create(t, fleet(name, func(cma *addonv1beta1.ClusterManagementAddOn) {
		cma.Spec.DefaultConfigs = []addonv1beta1.AddOnConfig{addOnConfig(foreignConfigs, "f")}
	}), addOn("foreign-c1", name))
	e.awaitConfigured(t, "foreign-c1", name, metav1.ConditionFalse, names.ReasonConfigurationsNotConfigured)
	patch := `{"status":{"defaultConfigReferences":[{"group":"example.com","resource":"foos","desiredConfig":{"namespace":"default","name":"f","specHash":"h1"}}]}}`
	if err := e.admin.Status().Patch(t.Context(), fleet(name), client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
	e.awaitConfigured(t, "foreign-c1", name, metav1.ConditionTrue, names.ReasonConfigurationsConfigured)
	e.awaitHashes(t, "foreign-c1", name, map[string]string{"foos/f": "h1"})
	e.status(t, "foreign-c1", name, `{"configReferences":[{"group":"example.com","resource":"foos","lastObservedGeneration":7,`+
		`"desiredConfig":{"namespace":"default","name":"f","specHash":"h1"},"lastAppliedConfig":{"namespace":"default","name":"f","specHash":"h0"}}]}`)
	e.status(t, "foreign-c1", name, `{"supportedConfigs":[{"group":"example.com","resource":"foos"}]}`)
	e.merge(t, addOn("foreign-c1", name), `{"spec":{"configs":[{"group":"example.com","resource":"foos","namespace":"default","name":"g"}]}}`)
	e.awaitConfigured(t, "foreign-c1", name, metav1.ConditionFalse, names.ReasonConfigurationsNotConfigured)
	e.status(t, "foreign-c1", name, `{"configReferences":[{"group":"example.com","resource":"foos","lastObservedGeneration":3,`+
		`"desiredConfig":{"namespace":"default","name":"g","specHash":"h2"}}]}`)
	found := e.awaitConfigured(t, "foreign-c1", name, metav1.ConditionTrue, names.ReasonConfigurationsConfigured)
	if got := found.Status.ConfigReferences[0].LastObservedGeneration; got != 3 {
		t.Errorf("observed generation %d", got)
	}
}

func testSelfManaged(t *testing.T, e *env, name string, writes *interrupt.Writes) {
	t.Helper()
	e.cluster(t, "selfmanaged-c1")
	e.cluster(t, "selfmanaged-c2")
	e.decide(t, "selfmanaged", "selfmanaged-c2")
	e.create(t, deploymentConfig("selfmanaged-d", "1"), addOn("selfmanaged-c1", name), fleet(name, placed("selfmanaged"), func(cma *addonv1beta1.ClusterManagementAddOn) {
		cma.Annotations = map[string]string{names.AnnotationAddOnLifecycle: "self"}
		cma.Spec.DefaultConfigs = []addonv1beta1.AddOnConfig{addOnConfig(deploymentConfigs, "selfmanaged-d")}
	}))
	eventually(t, "the default references are told", func(ctx context.Context) (bool, error) {
		cma := fleet(name)
		e.get(ctx, t, cma)
		return len(cma.Status.DefaultConfigReferences) == 1, nil
	})
	if got := slices.Concat(writes.About("selfmanaged-c1"), writes.About("selfmanaged-c2")); len(got) > 0 {
		t.Errorf("writes:\n%s", strings.Join(got, "\n"))
	}
	e.merge(t, fleet(name), `{"metadata":{"annotations":{"addon.open-cluster-management.io/lifecycle":"addon-manager"}}}`)
	e.awaitInstalled(t, name, "selfmanaged-c1", "selfmanaged-c2")
}

func testRollout(t *testing.T, e *env, name string, _ *interrupt.Writes) {
	t.Helper()
	e.create(t, fleet(name, placed("rollout"), func(cma *addonv1beta1.ClusterManagementAddOn) {
		cma.Spec.InstallStrategy.Placements[0].RolloutStrategy = clusterv1alpha1.RolloutStrategy{
			Type:        clusterv1alpha1.Progressive,
			Progressive: &clusterv1alpha1.RolloutProgressive{RolloutConfig: clusterv1alpha1.RolloutConfig{MaxFailures: intstr.FromString("5")}},
		}
	}))
	supported := func(ctx context.Context) *metav1.Condition {
		cma := fleet(name)
		e.get(ctx, t, cma)
		if len(cma.Status.InstallProgressions) == 0 {
			return nil
		}
		return apimeta.FindStatusCondition(cma.Status.InstallProgressions[0].Conditions, names.ConditionRolloutStrategySupported)
	}
	eventually(t, "the rollout is refused", func(ctx context.Context) (bool, error) {
		condition := supported(ctx)
		return condition != nil && strings.Contains(condition.Message, "correct the rolloutStrategy"), nil
	})
	e.changeFleet(t, name, func(cma *addonv1beta1.ClusterManagementAddOn) {
		cma.Spec.InstallStrategy.Placements[0].RolloutStrategy = clusterv1alpha1.RolloutStrategy{Type: clusterv1alpha1.All}
	})
	eventually(t, "the condition is gone", func(ctx context.Context) (bool, error) { return supported(ctx) == nil, nil })
}

// hash is the hash of an AddOnDeploymentConfig by the rule of addon-framework:
// everything but kind, metadata and status, as JSON with sorted keys.
func (e *env) hash(t *testing.T, name string) string {
	t.Helper()
	object := &unstructured.Unstructured{}
	object.SetAPIVersion("addon.open-cluster-management.io/v1beta1")
	object.SetKind("AddOnDeploymentConfig")
	if err := e.admin.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, object); err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(map[string]any{"spec": object.Object["spec"]})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", sha256.Sum256(data))
}

// TestConditionsStayTogether: the add-on manager sets one condition of an add-on without
// taking the other one away, which would make it write for ever.
func TestConditionsStayTogether(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	writes := newWrites()
	e.start(t, writes.Wrap)
	e.create(t, fleet("a1"))
	for _, cluster := range []string{"c1", "c2"} { // The second is done after what there was to do about the first.
		e.cluster(t, cluster)
		e.create(t, addOn(cluster, "a1"))
		e.awaitConfigured(t, cluster, "a1", metav1.ConditionTrue, names.ReasonConfigurationsConfigured)
		e.setCondition(t, cluster, "a1", addonv1beta1.ManagedClusterAddOnManifestApplied, "True")
		e.awaitAddOn(t, cluster, "a1", "is Configured and Progressing", func(a *addonv1beta1.ManagedClusterAddOn) bool {
			return apimeta.FindStatusCondition(a.Status.Conditions, addonv1beta1.ManagedClusterAddOnConditionProgressing) != nil &&
				apimeta.FindStatusCondition(a.Status.Conditions, addonv1beta1.ManagedClusterAddOnConditionConfigured) != nil
		})
	}
	// The owner, Configured, and Progressing.
	if got := writes.About("c1"); len(got) > 3 {
		t.Errorf("%d writes:\n%s", len(got), strings.Join(got, "\n"))
	}
}
