package agent_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installation"
)

// updatePods changes the status of the Pods with labels, of which there must be some, as a
// kubelet does.
func (p *place) updatePods(t *testing.T, labels client.MatchingLabels, change func(*corev1.PodStatus)) {
	t.Helper()
	await.Success(t, patience, "the Pods", func(ctx context.Context) error {
		var pods corev1.PodList
		if err := p.managed.List(ctx, &pods, client.InNamespace(p.cluster), labels); err != nil {
			return err
		}
		if len(pods.Items) == 0 {
			return errors.New("there is none")
		}
		for i := range pods.Items {
			change(&pods.Items[i].Status)
			if err := p.managed.Status().Update(ctx, &pods.Items[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

func waiting(reason, message string) func(*corev1.PodStatus) {
	return func(s *corev1.PodStatus) {
		s.ContainerStatuses = []corev1.ContainerStatus{{
			Name: "main", Image: "registry.example.com/web",
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}},
		}}
	}
}

func running(s *corev1.PodStatus) {
	s.Phase = corev1.PodRunning
	s.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	s.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
}

// testReady applies a Deployment whose image cannot be pulled: it is available at once, is
// not ready, for the reason of its Pod, and is ready when that runs.
func testReady(t *testing.T, p *place) {
	t.Helper()
	requests := &counter{}
	p.connection.Wrap(requests.wrap)
	p.start(t)
	work := p.create(t, "app", strings.Replace(webDeployment, "replicas: 0", "replicas: 1", 1)+"\n---"+oneMap)
	p.reaches(t, work, "Applied=True", "Available=True", "Ready=False")
	web := client.MatchingLabels{"app": "web"}
	p.updatePods(t, web, waiting("ErrImagePull", "not found"))
	// The Deployment counts its Pods step by step; that they are not available comes last.
	c := p.says(t, work, names.ConditionReady, "Available: 0/1; pod web-")
	if c.Reason != names.ReasonResourceNotReady || !strings.HasSuffix(c.Message, " cannot pull the image registry.example.com/web (ErrImagePull: not found)") {
		t.Errorf("%+v", c)
	}
	p.reaches(t, work, "Ready=False")
	if m := work.Status.ResourceStatus.Manifests; len(m) != 2 || apimeta.FindStatusCondition(m[1].Conditions, names.ConditionReady) != nil {
		t.Errorf("a ConfigMap says whether it is ready: %s", show(work))
	}
	// Between two tries the kubelet backs off, and says it in other words: no news.
	version := work.ResourceVersion
	p.updatePods(t, web, waiting("ImagePullBackOff", `Back-off pulling image "registry.example.com/web"`))
	looks := func() int { return len(requests.about("GET /api/v1/namespaces/" + p.cluster + "/pods")) }
	before := looks()
	await.Condition(t, patience, "the agent looks at the Pods again, and reports", func(context.Context) (bool, error) { return looks() > before+1, nil })
	p.reaches(t, work, "Ready=False")
	if work.ResourceVersion != version {
		t.Errorf("the same problem was reported again: %s", show(work))
	}
	p.updatePods(t, web, running)
	p.reaches(t, work, "Applied=True", "Available=True", "Ready=True")
	p.change(t, work, func(w *workv1.ManifestWork) {
		w.Spec.Workload.Manifests = p.manifests(t, strings.TrimPrefix(oneMap, "\n"))
	})
	p.reaches(t, work, "Ready=True")
}

// testReadyCustom has a custom resource whose controller says that it is not ready, and then
// that it is.
func testReadyCustom(t *testing.T, p *place) {
	t.Helper()
	group := p.cluster + ".test.example.com"
	installation.Create(t, p.managed, gears(group, false))
	p.permitAll(t, group)
	p.start(t)
	work := p.create(t, "app", `
apiVersion: `+group+`/v1
kind: Gear
metadata: {name: one, namespace: NS}`)
	p.reaches(t, work, "Applied=True", "Available=True", "Ready=True")
	for _, state := range []string{"False", "True"} {
		await.Success(t, patience, "a status", func(ctx context.Context) error {
			gear := &unstructured.Unstructured{Object: map[string]any{"apiVersion": group + "/v1", "kind": "Gear"}}
			if err := p.managed.Get(ctx, client.ObjectKey{Namespace: p.cluster, Name: "one"}, gear); err != nil {
				return err
			}
			gear.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": state, "reason": "Teeth", "message": "some teeth"}}}
			return p.managed.Update(ctx, gear)
		})
		p.reaches(t, work, "Applied=True", "Ready="+state)
	}
}

// testFinished has Jobs that Kubernetes deletes when they have finished, one well and one
// not: they run once, also with an agent that starts again, until the work changes. The
// agent reads their end although it reads other objects hourly.
func testFinished(t *testing.T, p *place) {
	t.Helper()
	p.config.StatusSyncInterval = time.Hour
	requests := &counter{}
	p.connection.Wrap(requests.wrap)
	stop := p.start(t)
	const spec = "spec: {ttlSecondsAfterFinished: 1, backoffLimit: 0, "
	for phase, ready := range map[corev1.PodPhase]string{corev1.PodSucceeded: "True", corev1.PodFailed: "False"} {
		name := strings.ToLower(string(phase))
		work := p.create(t, name, strings.NewReplacer("name: hook,", "name: "+name+",", "spec: {template", spec+"template").Replace(hookJob))
		p.reaches(t, work, "Applied=True", "Available=True", "Ready=False")
		// On a busy machine the Job could be gone before the agent has read its end.
		p.finalizers(t, name, "test.example.com/read")
		p.endPod(t, name, phase)
		p.manifestReaches(t, work, 0, names.ConditionReady, names.ReasonResourceFinished)
		p.finalizers(t, name)
		p.says(t, work, workv1.ManifestAvailable, names.MessageResourceFinished)
		p.reaches(t, work, "Applied=True", "Available=True", "Ready="+ready)
		p.manifestReaches(t, work, 0, names.ConditionReady, names.ReasonResourceFinished)
		path := "/apis/batch/v1/namespaces/" + p.cluster + "/jobs"
		created := func() int { return len(requests.about("PATCH " + path + "/" + name)) }
		before, reads := created(), len(requests.about("GET "+path+"/"+name))
		stop()
		stop = p.start(t)
		await.Condition(t, patience, "the next agent looks for the Job", func(context.Context) (bool, error) {
			return len(requests.about("GET "+path+"/"+name)) > reads, nil
		})
		p.reaches(t, work, "Applied=True", "Available=True", "Ready="+ready)
		err := p.managed.Get(t.Context(), client.ObjectKey{Namespace: p.cluster, Name: name}, &batchv1.Job{})
		if !apierrors.IsNotFound(err) || created() != before {
			t.Errorf("the Job %s runs again, %v", name, err)
		}
		p.change(t, work, func(w *workv1.ManifestWork) {
			w.Spec.DeleteOption = &workv1.DeleteOption{PropagationPolicy: workv1.DeletePropagationPolicyTypeForeground}
		})
		p.reaches(t, work, "Applied=True", "Available=True", "Ready=False")
		if created() == before {
			t.Errorf("a change of the work did not run %s again: %q", name, requests.about("jobs"))
		}
	}
}

// finalizers sets the finalizers of a Job.
func (p *place) finalizers(t *testing.T, job string, finalizers ...string) {
	t.Helper()
	await.Success(t, patience, "the Job", func(ctx context.Context) error {
		var found batchv1.Job
		if err := p.managed.Get(ctx, client.ObjectKey{Namespace: p.cluster, Name: job}, &found); err != nil {
			return err
		}
		found.Finalizers = finalizers
		return p.managed.Update(ctx, &found)
	})
}
