package klusterlet_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "open-cluster-management.io/api/operator/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

const finalizerHold = "test.example/hold"

// TestRightsOutliveTheAgents: an agent that still stops keeps the rights that it
// needs for that, and what another Klusterlet's agent has to clean up stays its.
func TestRightsOutliveTheAgents(t *testing.T) {
	t.Parallel()
	c := start(t, nil)
	c.awaitCondition(t, "Applied", operatorv1.ReasonKlusterletApplied)
	k := c.klusterlet(t)
	mine, theirs := c.appliedWork(t, "mine", string(k.UID)), c.appliedWork(t, "theirs", "another-klusterlet")
	pod := c.blockPod(t)

	if err := c.client.Delete(t.Context(), k); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the pod is waited for", func() error {
		applied := apimeta.FindStatusCondition(c.klusterlet(t).Status.Conditions, "Applied")
		if applied == nil || !strings.Contains(applied.Message, "pod "+pod.Namespace+"/"+pod.Name) {
			return fmt.Errorf("it says %+v", applied)
		}
		return nil
	})
	for _, list := range []client.ObjectList{
		&rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBindingList{}, &rbacv1.RoleList{}, &rbacv1.RoleBindingList{}, &corev1.ServiceAccountList{},
	} {
		if err := c.client.List(t.Context(), list, client.HasLabels{names.LabelCreatedByKlusterlet}); err != nil {
			t.Fatal(err)
		}
		if apimeta.LenList(list) == 0 {
			t.Errorf("nothing is left in %T while the agent still stops", list)
		}
	}
	for _, work := range []*workv1.AppliedManifestWork{mine, theirs} {
		if got := c.finalizers(t, work); len(got) != 1 {
			t.Errorf("%s was released while the agent still stops: %v", work.Name, got)
		}
	}

	c.release(t, pod)
	eventually(t, "the Klusterlet goes", func() error {
		return wantGone(c.client.Get(t.Context(), client.ObjectKey{Name: names.KlusterletName}, &operatorv1.Klusterlet{}))
	})
	if got := c.finalizers(t, mine); len(got) != 0 {
		t.Errorf("what the agent applied is held by %v, which nobody removes", got)
	}
	if got := c.finalizers(t, theirs); len(got) != 1 {
		t.Errorf("what another Klusterlet's agent applied was released: %v", got)
	}
}

// appliedWork is what a work agent leaves on the managed cluster.
func (c *cluster) appliedWork(t *testing.T, name, agent string) *workv1.AppliedManifestWork {
	t.Helper()
	work := &workv1.AppliedManifestWork{
		ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: []string{names.FinalizerAppliedManifestWork}},
		Spec:       workv1.AppliedManifestWorkSpec{AgentID: agent, HubHash: "h", ManifestWorkName: name},
	}
	if err := c.client.Create(t.Context(), work); err != nil {
		t.Fatal(err)
	}
	return work
}

func (c *cluster) finalizers(t *testing.T, work *workv1.AppliedManifestWork) []string {
	t.Helper()
	live := &workv1.AppliedManifestWork{}
	if err := c.client.Get(t.Context(), client.ObjectKeyFromObject(work), live); err != nil {
		t.Fatal(err)
	}
	return live.Finalizers
}

// blockPod keeps a pod of the agent from going.
func (c *cluster) blockPod(t *testing.T) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{}
	eventually(t, "a pod of the agent", func() error {
		var pods corev1.PodList
		err := c.client.List(t.Context(), &pods, client.InNamespace(names.AgentNamespace), client.MatchingLabels{"app": names.AppRegistrationAgent})
		if err != nil {
			return err
		}
		if len(pods.Items) == 0 {
			return errors.New("there is none")
		}
		*pod = pods.Items[0]
		pod.Finalizers = append(pod.Finalizers, finalizerHold)
		return c.client.Update(t.Context(), pod)
	})
	return pod
}

func (c *cluster) release(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
	if err := client.IgnoreNotFound(c.client.Patch(t.Context(), pod, patch)); err != nil {
		t.Fatal(err)
	}
}
