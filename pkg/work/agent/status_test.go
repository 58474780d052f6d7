package agent_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installation"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/interrupt"
)

// pod stays as it is: no scheduler and no kubelet run here.
const pod = `
apiVersion: v1
kind: Pod
metadata: {name: once, namespace: NS, annotations: {version: "1"}}
spec: {restartPolicy: Never, containers: [{name: once, image: registry.example.com/once}]}`

// enter sets the phase of the Pod, as a kubelet does.
func (p *place) enter(t *testing.T, phase corev1.PodPhase) {
	t.Helper()
	await.Success(t, patience, "a phase", func(ctx context.Context) error {
		pod := &corev1.Pod{}
		if err := p.managed.Get(ctx, client.ObjectKey{Namespace: p.cluster, Name: "once"}, pod); err != nil {
			return err
		}
		pod.Status.Phase = phase
		return p.managed.Status().Update(ctx, pod)
	})
}

// options are those of the Pod.
func (p *place) options(config workv1.ManifestConfigOption) func(*workv1.ManifestWork) {
	config.ResourceIdentifier = workv1.ResourceIdentifier{Resource: "pods", Namespace: p.cluster, Name: "once"}
	return func(w *workv1.ManifestWork) { w.Spec.ManifestConfigs = []workv1.ManifestConfigOption{config} }
}

// testFeedback changes the status of an object, once polled and once watched.
func testFeedback(t *testing.T, p *place) {
	t.Helper()
	p.start(t)
	rules := []workv1.FeedbackRule{{Type: workv1.WellKnownStatusType}}
	work := p.create(t, "app", pod, p.options(workv1.ManifestConfigOption{FeedbackRules: rules}))
	p.reaches(t, work, "Applied=True", "Available=True")
	for scrape, phase := range map[workv1.FeedbackScrapeType]corev1.PodPhase{workv1.FeedbackPollType: corev1.PodRunning, workv1.FeedbackWatchType: corev1.PodFailed} {
		p.change(t, work, p.options(workv1.ManifestConfigOption{FeedbackRules: rules, FeedbackScrapeType: scrape}))
		p.enter(t, phase)
		p.feeds(t, work, "PodPhase", string(phase))
	}
	p.change(t, work, func(w *workv1.ManifestWork) { w.Spec.ManifestConfigs = nil })
	p.manifestReaches(t, work, 0, names.ConditionStatusFeedbackSynced, names.ReasonNoStatusFeedback)
	if values := work.Status.ResourceStatus.Manifests[0].StatusFeedbacks.Values; len(values) != 0 {
		t.Errorf("feedback without rules: %+v", values)
	}
}

// testUnreported changes the status of an object while the hub refuses reports: it is
// reported once the hub accepts them, though the object does not change again.
func testUnreported(t *testing.T, p *place) {
	t.Helper()
	requests := &counter{}
	p.connection.Wrap(requests.wrap)
	p.start(t)
	rules := []workv1.FeedbackRule{{Type: workv1.WellKnownStatusType}}
	work := p.create(t, "app", pod, p.options(workv1.ManifestConfigOption{FeedbackRules: rules}))
	p.reaches(t, work, "Applied=True", "Available=True")
	p.permitReports(t)
	before := len(requests.about("pods/once"))
	p.enter(t, corev1.PodRunning)
	await.Condition(t, patience, "the agent looks again after a report that failed", func(context.Context) (bool, error) {
		return len(requests.about("pods/once")) >= before+2, nil
	})
	p.permitReports(t, "patch")
	p.feeds(t, work, "PodPhase", string(corev1.PodRunning))
}

// permitReports has the hub accept only these verbs of the agent's reports.
func (p *place) permitReports(t *testing.T, verbs ...string) {
	t.Helper()
	role := &rbacv1.Role{}
	await.Success(t, patience, "a change of the Role", func(ctx context.Context) error {
		if err := p.hub.Get(ctx, client.ObjectKey{Namespace: p.cluster, Name: "work"}, role); err != nil {
			return err
		}
		for i := range role.Rules {
			if rule := &role.Rules[i]; strings.HasSuffix(rule.Resources[0], "/status") {
				rule.Verbs = append([]string{"get"}, verbs...)
			}
		}
		return p.hub.Update(ctx, role)
	})
	await.Condition(t, patience, "the hub authorizes by it", func(ctx context.Context) (bool, error) {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: names.AgentUser(p.cluster, "test"), Groups: []string{names.ClusterGroup(p.cluster)},
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: p.cluster, Verb: "patch", Group: workv1.GroupName, Resource: "manifestworks", Subresource: "status",
			},
		}}
		err := p.hub.Create(ctx, review)
		return review.Status.Allowed == slices.Contains(verbs, "patch"), err
	})
}

// feeds waits until the first manifest of a work reports a value.
func (p *place) feeds(t *testing.T, work *workv1.ManifestWork, name, value string) {
	t.Helper()
	await.Success(t, patience, name, func(ctx context.Context) error {
		if err := p.hub.Get(ctx, client.ObjectKeyFromObject(work), work); err != nil {
			return err
		}
		for _, v := range work.Status.ResourceStatus.Manifests[0].StatusFeedbacks.Values {
			if v.Name == name && v.Value.String != nil && *v.Value.String == value {
				return nil
			}
		}
		return errors.New(show(work))
	})
}

// testComplete completes a Pod, after which neither a new manifest nor its deletion
// brings it back.
func testComplete(t *testing.T, p *place) {
	t.Helper()
	p.start(t)
	work := p.create(t, "app", pod, p.options(workv1.ManifestConfigOption{
		ConditionRules: []workv1.ConditionRule{{Type: workv1.WellKnownConditionsType, Condition: workv1.ManifestComplete}},
	}))
	p.reaches(t, work, "Applied=True", "Available=True", "Complete=False")
	p.enter(t, corev1.PodSucceeded)
	p.reaches(t, work, "Complete=True")
	p.change(t, work, func(w *workv1.ManifestWork) {
		w.Spec.Workload.Manifests = p.manifests(t, strings.Replace(pod, `"1"`, `"2"`, 1))
	})
	p.reaches(t, work, "Complete=True", "Applied=True")
	once := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: p.cluster, Name: "once"}}
	if err := p.managed.Get(t.Context(), client.ObjectKeyFromObject(once), once); err != nil || once.Annotations["version"] != "1" {
		t.Errorf("annotations %v, %v", once.Annotations, err)
	}
	if err := p.managed.Delete(t.Context(), once, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	p.says(t, work, workv1.ManifestAvailable, names.MessageResourceFinished)
	p.reaches(t, work, "Complete=True", "Available=True", "Ready=True")
}

// testRequests counts the requests that applying costs, and what comes after.
func testRequests(t *testing.T, p *place) {
	t.Helper()
	requests := &counter{}
	p.connection.Wrap(requests.wrap)
	p.start(t)
	first := p.create(t, "first", twoMaps)
	p.reaches(t, first, "Applied=True", "Available=True")
	// One creation per manifest, and no read.
	if got := requests.about("configmaps/", "POST /api/v1/namespaces/"); len(got) != 2 {
		t.Errorf("requests about two new objects: %q", got)
	}
	if got := requests.about("appliedmanifestworks/"); len(got) != 1 {
		t.Errorf("requests about a new AppliedManifestWork: %q", got)
	}
	before := len(requests.about(""))
	second := p.create(t, "second", strings.ReplaceAll(oneMap, "name: one", "name: other"))
	p.reaches(t, second, "Applied=True", "Available=True")
	p.change(t, second, func(w *workv1.ManifestWork) {
		w.Spec.Workload.Manifests = append(w.Spec.Workload.Manifests, p.manifests(t, strings.ReplaceAll(oneMap, "name: one", "name: third"))...)
	})
	p.finds(t, "third", exists)
	p.records(t, second, "other", "third")
	// AppliedManifestWork and its status, the object; the other object and its record.
	if got := requests.about("")[before:]; len(got) != 5 {
		t.Errorf("requests about a second work and its change: %q", got)
	}
}

// testInterrupted kills the agent after each write of a life of a work.
func testInterrupted(t *testing.T, p *place) {
	t.Helper()
	connection := p.connection
	for n := 1; ; n++ {
		writes := interrupt.After(n, "any", anything)
		p.connection = restCopy(connection, writes)
		stop := p.start(t)
		work := p.create(t, "app", twoMaps)
		done := p.live(t, work, stop, writes, func() { p.connection = restCopy(connection, nil) })
		p.finds(t, "one", missing)
		p.finds(t, "two", missing)
		if done {
			return
		}
	}
}

// testAbandoned kills the agent after each write of a work that is applied server-side,
// and deletes the work before the agent runs again.
func testAbandoned(t *testing.T, p *place) {
	t.Helper()
	connection := p.connection
	for n, cut := 1, true; cut; n++ {
		writes := interrupt.After(n, "any", anything)
		p.connection = restCopy(connection, writes)
		stop := p.start(t)
		work := p.create(t, "app", twoMaps, strategy(workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeServerSideApply}))
		cut = writes.AwaitCut(t, patience, p.isRecorded(work))
		stop()
		for _, name := range []string{"one", "two"} {
			c, err := p.configMap(t.Context(), name)
			if err != nil || c != nil && len(c.OwnerReferences) != 1 || !cut && slices.ContainsFunc(c.ManagedFields, appliesOwner) {
				t.Errorf("after write %d: %v, %v", n, describe(c), err)
			}
		}
		if err := p.hub.Delete(t.Context(), work); err != nil {
			t.Fatal(err)
		}
		p.connection = restCopy(connection, nil)
		stop = p.start(t)
		p.gone(t, work)
		p.finds(t, "one", missing)
		p.finds(t, "two", missing)
		stop()
	}
}

// appliesOwner reports whether owner references are among the fields that a manager has
// applied.
func appliesOwner(m metav1.ManagedFieldsEntry) bool {
	return m.Operation == metav1.ManagedFieldsOperationApply && strings.Contains(m.FieldsV1.GetRawString(), "f:ownerReferences")
}

// isRecorded reports whether all objects of a work are recorded, and that it was applied.
func (p *place) isRecorded(work *workv1.ManifestWork) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		applied, err := p.appliedOf(ctx, work)
		if err != nil || applied == nil {
			return false, err
		}
		if err := p.hub.Get(ctx, client.ObjectKeyFromObject(work), work); err != nil {
			return false, err
		}
		c := apimeta.FindStatusCondition(work.Status.Conditions, workv1.WorkApplied)
		return len(applied.Status.AppliedResources) == len(work.Spec.Workload.Manifests) && c != nil && c.ObservedGeneration == work.Generation, nil
	}
}

// anything is every write.
func anything(string, string) bool { return true }

// live runs a work to its end, with another agent after the first was cut off. It
// reports whether the first lived to the end.
func (p *place) live(t *testing.T, work *workv1.ManifestWork, stop func(), writes *interrupt.Writes, reconnect func()) (whole bool) {
	t.Helper()
	cut := false
	step := func(reached func(context.Context) (bool, error)) {
		if cut {
			await.Condition(t, patience, "the next step", reached)
			return
		}
		if cut = writes.AwaitCut(t, patience, reached); cut {
			stop()
			reconnect()
			stop = p.start(t)
			await.Condition(t, patience, "the next step", reached)
		}
	}
	settled := p.isRecorded(work)
	step(settled)
	p.change(t, work, func(w *workv1.ManifestWork) { w.Spec.Workload.Manifests = p.manifests(t, oneMap+"\nimmutable: false") })
	step(settled)
	p.finds(t, "two", missing)
	if err := p.hub.Delete(t.Context(), work); err != nil {
		t.Fatal(err)
	}
	step(func(ctx context.Context) (bool, error) {
		err := p.hub.Get(ctx, client.ObjectKeyFromObject(work), work)
		return err != nil, client.IgnoreNotFound(err)
	})
	stop()
	return !cut
}

// restCopy copies a connection, whose writes are watched.
func restCopy(connection *rest.Config, writes *interrupt.Writes) *rest.Config {
	c := rest.CopyConfig(connection)
	if writes != nil {
		c.Wrap(writes.Wrap)
	}
	return c
}

// testKubeconfig begins without a hub kubeconfig.
func testKubeconfig(t *testing.T, p *place) {
	t.Helper()
	data, err := os.ReadFile(p.config.HubKubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(p.config.HubKubeconfig); err != nil {
		t.Fatal(err)
	}
	p.start(t)
	work := p.create(t, "app", oneMap)
	if err := os.WriteFile(p.config.HubKubeconfig, data, 0o600); err != nil {
		t.Fatal(err)
	}
	p.reaches(t, work, "Applied=True", "Available=True")
}

// testPaths reports an integer, a string, a boolean and JSON, by paths.
func testPaths(t *testing.T, p *place) {
	t.Helper()
	p.config.RawFeedback = true
	p.start(t)
	var paths []workv1.JsonPath
	for name, path := range map[string]string{
		"grace": ".spec.terminationGracePeriodSeconds", "policy": ".spec.restartPolicy", "links": ".spec.enableServiceLinks", "annotations": ".metadata.annotations", "none": ".status.none",
	} {
		paths = append(paths, workv1.JsonPath{Name: name, Path: path})
	}
	work := p.create(t, "app", pod, p.options(workv1.ManifestConfigOption{FeedbackRules: []workv1.FeedbackRule{{Type: workv1.JSONPathsType, JsonPaths: paths}}}))
	p.manifestReaches(t, work, 0, names.ConditionStatusFeedbackSynced, names.ReasonStatusFeedbackSynced)
	got := map[string]workv1.FieldValue{}
	for _, v := range work.Status.ResourceStatus.Manifests[0].StatusFeedbacks.Values {
		got[v.Name] = v.Value
	}
	want := map[string]workv1.FieldValue{
		"grace": {Type: workv1.Integer, Integer: new(int64(30))}, "policy": {Type: workv1.String, String: new("Never")},
		"links": {Type: workv1.Boolean, Boolean: new(true)}, "annotations": {Type: workv1.JsonRaw, JsonRaw: new(`{"version":"1"}`)},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// testRules sums the conditions of two manifests up: Progressing is that of any, others
// that of all.
func testRules(t *testing.T, p *place) {
	t.Helper()
	p.start(t)
	rule := func(condition, expression string) workv1.ConditionRule {
		return workv1.ConditionRule{Condition: condition, Type: workv1.CelConditionExpressionsType, CelExpressions: []string{expression}}
	}
	work := p.create(t, "app", twoMaps, func(w *workv1.ManifestWork) {
		w.Spec.ManifestConfigs = []workv1.ManifestConfigOption{{
			ResourceIdentifier: workv1.ResourceIdentifier{Resource: "configmaps", Namespace: "*", Name: "*"},
			ConditionRules: []workv1.ConditionRule{
				rule(workv1.WorkProgressing, `object.metadata.name == "one"`), rule("Named", `object.metadata.name == "one"`),
				rule("Keyed", `object.data.key == "value"`), rule("Wrong", `object.data.key +`),
			},
		}}
	})
	p.reaches(t, work, "Applied=True", "Available=True", "Progressing=True", "Named=False", "Keyed=True", "Wrong=False")
	p.manifestReaches(t, work, 0, "Named", workv1.ConditionRuleEvaluated)
	p.manifestReaches(t, work, 1, "Wrong", workv1.ConditionRuleExpressionError)
	p.edit(t, "one", `{"metadata":{"labels":{"theirs":"stays"}}}`)
	p.change(t, work, func(w *workv1.ManifestWork) { w.Spec.ManifestConfigs = nil })
	await.Success(t, patience, "the conditions of rules go", func(ctx context.Context) error {
		if err := p.hub.Get(ctx, client.ObjectKeyFromObject(work), work); err != nil {
			return err
		}
		if apimeta.FindStatusCondition(work.Status.Conditions, "Keyed") != nil {
			return errors.New(show(work))
		}
		return nil
	})
}

// testEvents has a work that cannot be applied, and then can be: an event and a metric
// say so.
func testEvents(t *testing.T, p *place) {
	t.Helper()
	p.start(t)
	work := p.create(t, "app", oneMap+"\n---"+strings.ReplaceAll(oneMap, "namespace: NS", "namespace: NS-late"))
	p.reaches(t, work, "Applied=False", "Available=False")
	p.event(t, work, "ApplyFailed", "1 of 2 manifests cannot be applied; manifest 1: ")
	p.measures(t, "ocm_work_failing", 1)
	p.measures(t, "ocm_work_hub_connected", 1)
	installation.Create(t, p.managed, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.cluster + "-late"}})
	p.reaches(t, work, "Applied=True", "Available=True")
	p.event(t, work, "Applied", "applied all 2 manifests")
	p.measures(t, "ocm_work_failing", 0)
	p.edit(t, "one", `{"data":{"key":"other"}}`)
	p.measures(t, "ocm_work_repairs_total", 1)
}

// event waits for an event about a work.
func (p *place) event(t *testing.T, work *workv1.ManifestWork, reason, note string) {
	t.Helper()
	await.Success(t, patience, "an event "+reason, func(ctx context.Context) error {
		var all eventsv1.EventList
		if err := p.hub.List(ctx, &all, client.InNamespace(p.cluster)); err != nil {
			return err
		}
		for _, e := range all.Items {
			if e.Regarding.UID == work.UID && e.Reason == reason && strings.HasPrefix(e.Note, note) {
				return nil
			}
		}
		return fmt.Errorf("%d events: %+v", len(all.Items), all.Items)
	})
}

// measures waits for the value of a metric without labels.
func (p *place) measures(t *testing.T, name string, value float64) {
	t.Helper()
	await.Success(t, patience, name, func(context.Context) error {
		families, err := p.metrics.Gather()
		for _, f := range families {
			m := f.GetMetric()[0]
			if f.GetName() == name && m.GetGauge().GetValue()+m.GetCounter().GetValue() == value {
				return nil
			}
		}
		return errors.Join(err, fmt.Errorf("%v", families))
	})
}
