package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// TestTemplate makes the sample add-on from its AddOnTemplate, with no program of its own
// on the hub: it registers by both drivers, is available by what the work agents report,
// and leaves nothing.
func TestTemplate(t *testing.T) {
	t.Parallel()
	a := &addOn{fleet: fleet, name: "e2e-template", hub: fleet.client(t, "hub")}
	manifest, err := os.ReadFile("../examples/heartbeat/deploy/template.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer(sampleImage, sampleImage, "--interval=10s", "--interval=200ms", "heartbeat", a.name).Replace(string(manifest))
	for _, obj := range parse(t, text) {
		a.create(t, obj)
	}
	clusters := []string{"cluster1", "cluster2"}
	for _, cluster := range clusters {
		a.add(t, cluster)
	}
	for _, cluster := range clusters {
		a.awaitAgent(t, cluster)
	}
	csr := a.awaitBeat(t, "cluster1", "certificate", beat{})
	token := a.awaitBeat(t, "cluster2", "token", beat{})
	account := names.AddOnServiceAccount("cluster2", a.name)
	for user, want := range map[string]string{
		csr.user:   names.AddOnUser("cluster1", a.name, a.name+"-agent"),
		token.user: names.ServiceAccountUser("cluster2", account),
	} {
		if user != want {
			t.Errorf("the add-on is %s, want %s", user, want)
		}
	}
	for _, cluster := range clusters {
		a.awaitProbed(t, cluster)
	}
	a.removal(t, account)
	for _, cluster := range clusters {
		wantNothing(t, a.hub, "the works and permissions go from "+cluster,
			&workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: names.AddOnDeployWork(a.name, 0)}},
			&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "open-cluster-management:" + a.name + ":clusterrole:agent"}})
		meta := metav1.ObjectMeta{Namespace: addOnNamespace, Name: a.name + "-agent"}
		wantNothing(t, fleet.client(t, cluster), "the agent goes from "+cluster,
			&appsv1.Deployment{ObjectMeta: meta}, &rbacv1.RoleBinding{ObjectMeta: meta}, &rbacv1.Role{ObjectMeta: meta}, &corev1.ServiceAccount{ObjectMeta: meta})
	}
}

// create creates an object on the hub until the end of the test.
func (a *addOn) create(t *testing.T, obj client.Object) {
	t.Helper()
	if err := a.hub.Create(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.hub.Delete(context.WithoutCancel(t.Context()), obj) })
}

// awaitProbed waits until the add-on is available by what the work agent reports.
func (a *addOn) awaitProbed(t *testing.T, cluster string) {
	t.Helper()
	eventually(t, a.name+" is available on "+cluster, func(ctx context.Context) error {
		obj, err := a.get(ctx, cluster)
		if err != nil {
			return err
		}
		c := trueCondition(obj.Status.Conditions, addonv1beta1.ManagedClusterAddOnConditionAvailable)
		if c == nil || c.Reason != addonv1beta1.AddonAvailableReasonProbeAvailable {
			return fmt.Errorf("conditions are %+v", obj.Status.Conditions)
		}
		return nil
	})
}

// soak is how long a version of TestTemplateRollout must have run on one cluster before
// the next one gets it. Tests of pkg/addon have a clock of their own and see that it is
// waited for.
const soak = 3 * time.Second

// TestTemplateRollout installs an add-on on one cluster after the other, and another
// version of its template.
func TestTemplateRollout(t *testing.T) {
	t.Parallel()
	a := &addOn{fleet: fleet, name: "e2e-rollout", hub: fleet.client(t, "hub")}
	clusters := []string{"cluster1", "cluster2"}
	a.decide(t, clusters...)
	template := a.template("1")
	a.create(t, template)
	a.create(t, a.inSteps())
	t.Cleanup(func() { a.awaitLeft(t, clusters...) })
	for _, version := range []string{"1", "2"} {
		if version == "2" {
			template.Object["spec"] = a.template(version).Object["spec"]
			if err := a.hub.Update(t.Context(), template); err != nil {
				t.Fatal(err)
			}
		}
		second := a.deployed(t, fleet.client(t, clusters[1]), version)
		first, err := a.deployment(t.Context(), fleet.client(t, clusters[0]), version)
		if err != nil {
			t.Fatalf("%s has version %s, and %s: %v", clusters[1], version, clusters[0], err)
		}
		if second.Before(first) {
			t.Errorf("version %s was on %s before %s", version, clusters[1], clusters[0])
		}
		a.awaitProgression(t, addonv1beta1.ProgressingReasonCompleted)
	}
}

// decide chooses clusters as a scheduler does.
func (a *addOn) decide(t *testing.T, clusters ...string) {
	t.Helper()
	decision := &clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: a.name + "-decision-1", Labels: map[string]string{clusterv1beta1.PlacementLabel: a.name},
	}}
	a.create(t, decision)
	for _, cluster := range clusters {
		decision.Status.Decisions = append(decision.Status.Decisions, clusterv1beta1.ClusterDecision{ClusterName: cluster})
	}
	if err := a.hub.Status().Update(t.Context(), decision); err != nil {
		t.Fatal(err)
	}
}

// template is an AddOnTemplate with a ConfigMap for each version.
func (a *addOn) template(version string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "AddOnTemplate", "metadata": map[string]any{"name": a.name},
		"spec": map[string]any{"addonName": a.name, "agentSpec": map[string]any{"workload": map[string]any{"manifests": []any{map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "default", "name": a.name + "-" + version},
		}}}}},
	}}
}

// inSteps installs the add-on on the chosen clusters, one at a time.
func (a *addOn) inSteps() *addonv1beta1.ClusterManagementAddOn {
	return &addonv1beta1.ClusterManagementAddOn{
		ObjectMeta: metav1.ObjectMeta{Name: a.name},
		Spec: addonv1beta1.ClusterManagementAddOnSpec{
			DefaultConfigs: []addonv1beta1.AddOnConfig{{
				ConfigGroupResource: addonv1beta1.ConfigGroupResource{Group: addonv1beta1.GroupName, Resource: "addontemplates"},
				ConfigReferent:      addonv1beta1.ConfigReferent{Name: a.name},
			}},
			InstallStrategy: addonv1beta1.InstallStrategy{
				Type: addonv1beta1.AddonInstallStrategyPlacements,
				Placements: []addonv1beta1.PlacementStrategy{{
					PlacementRef: addonv1beta1.PlacementRef{Namespace: "default", Name: a.name},
					RolloutStrategy: clusterv1alpha1.RolloutStrategy{Type: clusterv1alpha1.Progressive, Progressive: &clusterv1alpha1.RolloutProgressive{
						RolloutConfig:  clusterv1alpha1.RolloutConfig{MinSuccessTime: metav1.Duration{Duration: soak}},
						MaxConcurrency: intstr.FromInt32(1),
					}},
				}},
			},
		},
	}
}

// deployment returns when a version was deployed on a cluster.
func (a *addOn) deployment(ctx context.Context, cluster client.Client, version string) (time.Time, error) {
	var c corev1.ConfigMap
	err := cluster.Get(ctx, client.ObjectKey{Namespace: "default", Name: a.name + "-" + version}, &c)
	return c.CreationTimestamp.Time, err
}

// deployed waits until a version is deployed on a cluster, and returns since when.
func (a *addOn) deployed(t *testing.T, cluster client.Client, version string) time.Time {
	t.Helper()
	var since time.Time
	eventually(t, a.name+" is deployed in version "+version, func(ctx context.Context) (err error) {
		since, err = a.deployment(ctx, cluster, version)
		return err
	})
	return since
}

// awaitProgression waits until the whole rollout has a state.
func (a *addOn) awaitProgression(t *testing.T, reason string) {
	t.Helper()
	eventually(t, "the rollout is "+reason, func(ctx context.Context) error {
		var obj addonv1beta1.ClusterManagementAddOn
		if err := a.hub.Get(ctx, client.ObjectKey{Name: a.name}, &obj); err != nil {
			return err
		}
		for _, p := range obj.Status.InstallProgressions {
			c := apimeta.FindStatusCondition(p.Conditions, addonv1beta1.ManagedClusterAddOnConditionProgressing)
			if c != nil && c.Reason == reason {
				return nil
			}
		}
		return fmt.Errorf("%+v", obj.Status.InstallProgressions)
	})
}

// awaitLeft deletes the add-on and waits until clusters have nothing of it: other tests
// have the same ones.
func (a *addOn) awaitLeft(t *testing.T, clusters ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	defer cancel()
	err := a.hub.Delete(ctx, &addonv1beta1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: a.name}})
	for _, cluster := range clusters {
		err = errors.Join(err, a.awaitNoWorks(ctx, cluster))
	}
	if err != nil {
		t.Errorf("%s is left: %v", a.name, err)
	}
}
