package agent_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installation"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/upstream"
)

// TestUpstream has the agent on a hub that OCM's controllers made, and before and after
// OCM's agent on one cluster.
func TestUpstream(t *testing.T) {
	t.Parallel()
	managed := controlplane.Lease(t)
	for name, test := range map[string]func(*testing.T, *place){
		"add-on":      testTheirAddOn,
		"replica-set": testTheirReplicaSet,
		"detach":      testTheirDetach,
		"from-theirs": testFromTheirs,
		"from-ours":   testFromOurs,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newPlaceOn(t, hub, managed, name, upstream.Accept))
		})
	}
}

const hookJob = `
apiVersion: batch/v1
kind: Job
metadata: {name: hook, namespace: NS}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: registry.example.com/hook}]}}}`

const webDeployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: NS, labels: {app: web}}
spec:
  replicas: 0
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: registry.example.com/web}]}`

// testTheirAddOn applies the works that addon-framework v1.3 makes for an add-on with a
// pre-delete hook, and reports what it reads of them.
func testTheirAddOn(t *testing.T, p *place) {
	t.Helper()
	webhook := upstream.GuardWorks(t, hub, p.cluster)
	p.start(t)
	work := p.create(t, "addon-web-deploy-0", strings.Replace(webDeployment, "replicas: 0", "replicas: 1", 1)+"\n---"+oneMap, ofAddOn, feedback("apps", "deployments", p.cluster, "web"), func(w *workv1.ManifestWork) {
		w.Spec.DeleteOption = &workv1.DeleteOption{
			PropagationPolicy: workv1.DeletePropagationPolicyTypeSelectivelyOrphan,
			SelectivelyOrphan: &workv1.SelectivelyOrphan{OrphaningRules: []workv1.OrphaningRule{{Resource: "configmaps", Namespace: p.cluster, Name: "one"}}},
		}
	})
	p.reaches(t, work, "Applied=True", "Available=True")
	p.values(t, work, map[string]string{"Replicas": "1"})
	hook := p.create(t, "addon-web-pre-delete", hookJob, ofAddOn, feedback("batch", "jobs", p.cluster, "hook"))
	p.reaches(t, hook, "Applied=True", "Available=True")
	p.endPod(t, "hook", corev1.PodSucceeded)
	p.values(t, hook, map[string]string{"JobComplete": "True"})
	for _, w := range []*workv1.ManifestWork{hook, work} {
		if err := p.hub.Delete(t.Context(), w); err != nil {
			t.Fatal(err)
		}
		p.gone(t, w)
	}
	p.finds(t, "one", func(c *corev1.ConfigMap) bool { return c != nil && len(c.OwnerReferences) == 0 })
	p.neverRefused(t, webhook)
}

// ofAddOn labels a work as addon-framework does.
func ofAddOn(w *workv1.ManifestWork) {
	w.Labels = map[string]string{names.LabelAddOnName: "web"}
}

// feedback asks for the well-known status of an object.
func feedback(group, resource, namespace, name string) func(*workv1.ManifestWork) {
	return func(w *workv1.ManifestWork) {
		w.Spec.ManifestConfigs = append(w.Spec.ManifestConfigs, workv1.ManifestConfigOption{
			ResourceIdentifier: workv1.ResourceIdentifier{Group: group, Resource: resource, Namespace: namespace, Name: name},
			FeedbackRules:      []workv1.FeedbackRule{{Type: workv1.WellKnownStatusType}},
		})
	}
}

// values waits until the first manifest of a work reports values.
func (p *place) values(t *testing.T, work *workv1.ManifestWork, wanted map[string]string) {
	t.Helper()
	await.Success(t, patience, "the feedback of "+work.Name, func(ctx context.Context) error {
		if err := p.hub.Get(ctx, client.ObjectKeyFromObject(work), work); err != nil {
			return err
		}
		found := map[string]string{}
		for _, v := range work.Status.ResourceStatus.Manifests[0].StatusFeedbacks.Values {
			switch {
			case v.Value.Integer != nil:
				found[v.Name] = strconv.FormatInt(*v.Value.Integer, 10)
			case v.Value.String != nil:
				found[v.Name] = *v.Value.String
			}
		}
		for name, value := range wanted {
			if found[name] != value {
				return fmt.Errorf("the values are %v", found)
			}
		}
		return nil
	})
}

// endPod ends the Pod of a Job in a phase, as a kubelet does.
func (p *place) endPod(t *testing.T, job string, phase corev1.PodPhase) {
	t.Helper()
	p.updatePods(t, client.MatchingLabels{"batch.kubernetes.io/job-name": job}, func(s *corev1.PodStatus) { s.Phase = phase })
}

// neverRefused checks that a webhook has reviewed the agent's writes, and allowed all.
func (p *place) neverRefused(t *testing.T, webhook *upstream.WorkWebhook) {
	t.Helper()
	users, refused := webhook.Asked()
	if !slices.Contains(users, names.AgentUser(p.cluster, "test")) || len(refused) > 0 {
		t.Errorf("reviewed writes of %v, and refused %q", users, refused)
	}
}

// testTheirReplicaSet applies a work as the controller of ManifestWorkReplicaSets makes
// it, with an executor.
func testTheirReplicaSet(t *testing.T, p *place) {
	t.Helper()
	webhook := upstream.GuardWorks(t, hub, p.cluster)
	installation.Create(t, p.managed,
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: p.cluster, Name: "deployer"}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "create", "update", "patch", "delete"}},
		}},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: p.cluster, Name: "deployer"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "deployer"},
			Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: p.cluster, Name: "deployer"}},
		})
	p.start(t)
	labels := map[string]string{
		"work.open-cluster-management.io/manifestworkreplicaset": "default.app",
		"work.open-cluster-management.io/placementname":          "all",
	}
	work := p.create(t, "app", oneMap, strategy(workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeServerSideApply}), func(w *workv1.ManifestWork) {
		w.Labels = labels
		w.Spec.Executor = &workv1.ManifestWorkExecutor{Subject: workv1.ManifestWorkExecutorSubject{
			Type:           workv1.ExecutorSubjectTypeServiceAccount,
			ServiceAccount: &workv1.ManifestWorkSubjectServiceAccount{Namespace: p.cluster, Name: "deployer"},
		}}
	})
	p.reaches(t, work, "Applied=True", "Available=True")
	applied, err := p.appliedOf(t.Context(), work)
	if err != nil || applied == nil {
		t.Fatal(applied, err)
	}
	if diff := cmp.Diff(labels, applied.Labels); diff != "" {
		t.Errorf("labels of the AppliedManifestWork (-want +got):\n%s", diff)
	}
	p.finds(t, "one", func(c *corev1.ConfigMap) bool { return c != nil && len(c.OwnerReferences) == 1 })
	p.neverRefused(t, webhook)
}

// testTheirDetach finishes the works of a cluster while OCM's hub detaches it: only the
// binding of the work agent is left, and that is being deleted.
func testTheirDetach(t *testing.T, p *place) {
	t.Helper()
	p.start(t)
	work := p.create(t, "app", twoMaps)
	p.reaches(t, work, "Applied=True", "Available=True")
	name := names.ManagedClusterClusterRole(p.cluster)
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: p.cluster, Name: names.WorkRoleBinding(p.cluster)}}
	for _, obj := range []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}},
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: p.cluster, Name: name + ":registration"}},
		binding, work,
	} {
		if err := p.hub.Delete(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	p.gone(t, work)
	p.finds(t, "one", missing)
	if err := p.hub.Get(t.Context(), client.ObjectKeyFromObject(binding), binding); err != nil || binding.DeletionTimestamp.IsZero() {
		t.Fatalf("the binding is not being deleted: %v", err)
	}
	binding.Finalizers = nil
	if err := p.hub.Update(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
}

// handedOver is applied by every strategy that changes objects.
const handedOver = webDeployment + `
---
apiVersion: v1
kind: ConfigMap
metadata: {name: updated, namespace: NS, labels: {color: blue}}
data: {key: value}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: applied, namespace: NS, creationTimestamp: null}
data: {key: value}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: ignoring, namespace: NS, annotations: {a: b}, creationTimestamp: null}
data: {present: mine, changed: mine, key: value}`

// handedOverConfigs are the options of the manifests of handedOver.
func (p *place) handedOverConfigs(w *workv1.ManifestWork) {
	apply := func(name string, fields ...workv1.IgnoreField) {
		w.Spec.ManifestConfigs = append(w.Spec.ManifestConfigs, workv1.ManifestConfigOption{
			ResourceIdentifier: workv1.ResourceIdentifier{Resource: "configmaps", Namespace: p.cluster, Name: name},
			UpdateStrategy: &workv1.UpdateStrategy{
				Type: workv1.UpdateStrategyTypeServerSideApply, ServerSideApply: &workv1.ServerSideApplyConfig{Force: true, IgnoreFields: fields},
			},
		})
	}
	apply("applied")
	apply("ignoring",
		workv1.IgnoreField{Condition: workv1.IgnoreFieldsConditionOnSpokePresent, JSONPointers: []string{"/data/present"}},
		workv1.IgnoreField{Condition: workv1.IgnoreFieldsConditionOnSpokeChange, JSONPointers: []string{"/data/changed"}})
	feedback("apps", "deployments", p.cluster, "web")(w)
}

// applies has an agent apply a work until nothing is left to do, and stops it.
type applies func(t *testing.T, work *workv1.ManifestWork)

// theirs is OCM's agent.
func (p *place) theirs(t *testing.T) applies {
	t.Helper()
	as := func(connection *rest.Config) *rest.Config {
		connection.UserAgent = "work-agent"
		return connection
	}
	theirs := &upstream.Agent{
		Hub:     hub.ClientFor(t, as(hub.ConfigFor(t, names.AgentUser(p.cluster, "test"), names.ClusterGroup(p.cluster)))),
		Managed: hub.ClientFor(t, as(rest.CopyConfig(p.connection))),
		Cluster: p.cluster, HubHash: names.HubHash(p.hubURL), AgentID: p.config.AgentID,
	}
	return func(t *testing.T, work *workv1.ManifestWork) {
		t.Helper()
		await.Success(t, patience, "OCM's agent has applied "+work.Name, func(ctx context.Context) error {
			before := theirs.Writes
			if err := theirs.Sync(ctx, work.Name); err != nil {
				return err
			}
			if theirs.Writes != before {
				return errors.New("it wrote something")
			}
			return nil
		})
	}
}

// ours is the agent. It has looked at all objects when it is stopped, and applied another
// work after that.
func (p *place) ours(t *testing.T) applies {
	t.Helper()
	connection := p.connection
	times := 0
	return func(t *testing.T, work *workv1.ManifestWork) {
		t.Helper()
		if err := p.hub.Get(t.Context(), client.ObjectKeyFromObject(work), work); err != nil {
			t.Fatal(err)
		}
		requests := &counter{}
		p.connection = rest.CopyConfig(connection)
		p.connection.Wrap(requests.wrap)
		stop := p.start(t)
		defer stop()
		if len(work.Status.Conditions) > 0 {
			await.Success(t, patience, "the agent has looked at each object", func(context.Context) error {
				for _, path := range []string{"/deployments/web", "/configmaps/updated", "/configmaps/applied", "/configmaps/ignoring"} {
					if len(requests.about(path)) == 0 {
						return fmt.Errorf("no request to %s in %q", path, requests.about(""))
					}
				}
				return nil
			})
		}
		p.reaches(t, work, "Applied=True", "Available=True")
		times++
		other := p.create(t, fmt.Sprint("other-", times), strings.ReplaceAll(oneMap, "name: one", fmt.Sprint("name: other-", times)))
		p.reaches(t, other, "Applied=True", "Available=True")
	}
}

func testFromTheirs(t *testing.T, p *place) {
	t.Helper()
	p.handOver(t, p.theirs(t), p.ours(t))
}

func testFromOurs(t *testing.T, p *place) {
	t.Helper()
	p.handOver(t, p.ours(t), p.theirs(t))
}

// handOver has one agent apply a work, another one continue, and the first one again:
// neither touches what the other has applied, nor what it reported.
func (p *place) handOver(t *testing.T, first, second applies) {
	t.Helper()
	work := p.create(t, "app", handedOver, p.handedOverConfigs)
	first(t, work)
	p.settled(t)
	p.edit(t, "ignoring", `{"data":{"present":"theirs","changed":"theirs"}}`)
	first(t, work)
	before := p.state(t, work)
	for _, next := range []struct {
		name string
		run  applies
	}{{"the second", second}, {"the first again", first}} {
		next.run(t, work)
		if diff := cmp.Diff(before, p.state(t, work)); diff != "" {
			t.Errorf("%s has changed (-before +after):\n%s", next.name, diff)
		}
	}
	p.change(t, work, func(w *workv1.ManifestWork) {
		w.Spec.Workload.Manifests = p.manifests(t, strings.ReplaceAll(handedOver, "key: value", "key: other"))
	})
	second(t, work)
	p.finds(t, "ignoring", func(c *corev1.ConfigMap) bool {
		return c.Data["present"] == "theirs" && c.Data["changed"] == "mine" && c.Data["key"] == "other"
	})
}

// settled waits until the controllers of the managed cluster are done with the
// Deployment.
func (p *place) settled(t *testing.T) {
	t.Helper()
	await.Success(t, patience, "the Deployment is rolled out", func(ctx context.Context) error {
		var d appsv1.Deployment
		if err := p.managed.Get(ctx, client.ObjectKey{Namespace: p.cluster, Name: "web"}, &d); err != nil {
			return err
		}
		for _, c := range d.Status.Conditions {
			if c.Type == appsv1.DeploymentProgressing && c.Reason == "NewReplicaSetAvailable" && d.Status.ObservedGeneration == d.Generation {
				return nil
			}
		}
		return fmt.Errorf("%+v", d.Status)
	})
}

// state is everything that a change of the agent must leave as it is.
func (p *place) state(t *testing.T, work *workv1.ManifestWork) map[string]string {
	t.Helper()
	state := map[string]string{}
	read := func(name string, obj client.Object) {
		if err := p.managed.Get(t.Context(), client.ObjectKey{Namespace: p.cluster, Name: name}, obj); err != nil {
			t.Fatal(err)
		}
		state[name] = fmt.Sprint(obj.GetUID(), " ", obj.GetResourceVersion(), " ", obj.GetOwnerReferences(), " ", obj.GetAnnotations())
	}
	read("web", &appsv1.Deployment{})
	for _, name := range []string{"updated", "applied", "ignoring"} {
		read(name, &corev1.ConfigMap{})
	}
	applied, err := p.appliedOf(t.Context(), work)
	if err != nil || applied == nil {
		t.Fatal(applied, err)
	}
	state["AppliedManifestWork"] = fmt.Sprint(applied.UID, " ", applied.ResourceVersion, " ", applied.Spec, " ", applied.Status)
	if err := p.hub.Get(t.Context(), client.ObjectKeyFromObject(work), work); err != nil {
		t.Fatal(err)
	}
	state["status"] = show(withoutReady(work))
	return state
}

// withoutReady is a work without what OCM's agent does not report, and ours adds.
func withoutReady(work *workv1.ManifestWork) *workv1.ManifestWork {
	work = work.DeepCopy()
	apimeta.RemoveStatusCondition(&work.Status.Conditions, names.ConditionReady)
	for i := range work.Status.ResourceStatus.Manifests {
		apimeta.RemoveStatusCondition(&work.Status.ResourceStatus.Manifests[i].Conditions, names.ConditionReady)
	}
	return work
}
