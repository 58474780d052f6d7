package klusterlet_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apply"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/operator/klusterlet"
)

// add creates a further Klusterlet.
func (c *cluster) add(t *testing.T, name, namespace string, finalizers ...string) {
	t.Helper()
	k := &operatorv1.Klusterlet{
		ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: finalizers},
		Spec:       operatorv1.KlusterletSpec{ClusterName: "c2", Namespace: namespace},
	}
	if err := c.client.Create(t.Context(), k); err != nil {
		t.Fatal(err)
	}
}

// expectApplied waits for a reason of the condition Applied of a Klusterlet.
func (c *cluster) expectApplied(t *testing.T, name, reason string) {
	t.Helper()
	eventually(t, name+" "+reason, func() error {
		var k operatorv1.Klusterlet
		if err := c.client.Get(t.Context(), client.ObjectKey{Name: name}, &k); err != nil {
			return err
		}
		if got := apimeta.FindStatusCondition(k.Status.Conditions, "Applied"); got == nil || got.Reason != reason {
			return fmt.Errorf("conditions are %+v", k.Status.Conditions)
		}
		return nil
	})
}

// remove deletes a Klusterlet and waits until it is gone.
func (c *cluster) remove(t *testing.T, name string) {
	t.Helper()
	if err := c.client.Delete(t.Context(), &operatorv1.Klusterlet{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		t.Fatal(err)
	}
	eventually(t, name+" goes", func() error {
		return wantGone(c.client.Get(t.Context(), client.ObjectKey{Name: name}, &operatorv1.Klusterlet{}))
	})
}

// expectShared waits until what all Klusterlets share is marked as one's.
func (c *cluster) expectShared(t *testing.T, name string) {
	t.Helper()
	eventually(t, "what is shared is of "+name, func() error {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := c.client.Get(t.Context(), client.ObjectKey{Name: "clusterclaims.cluster.open-cluster-management.io"}, crd); err != nil {
			return err
		}
		namespace := &corev1.Namespace{}
		if err := c.client.Get(t.Context(), client.ObjectKey{Name: names.AddOnNamespace}, namespace); err != nil {
			return err
		}
		for _, labels := range []map[string]string{crd.Labels, namespace.Labels} {
			if labels[names.LabelCreatedByKlusterlet] != name {
				return fmt.Errorf("labels %v", labels)
			}
		}
		if !namespace.DeletionTimestamp.IsZero() || crd.Annotations[names.AnnotationVersion] == "" {
			return fmt.Errorf("namespace deleted %v, CRD %v", namespace.DeletionTimestamp, crd.Annotations)
		}
		return nil
	})
}

// TestKlusterletsShareACluster has two in namespaces of their own. What they
// share belongs to one of them at a time.
func TestKlusterletsShareACluster(t *testing.T) {
	t.Parallel()
	c := start(t, nil)
	c.awaitCondition(t, "Applied", operatorv1.ReasonKlusterletApplied)
	c.add(t, "second", "open-cluster-management-second")
	c.expectApplied(t, "second", operatorv1.ReasonKlusterletApplied)
	c.quiet(t)
	c.expectShared(t, names.KlusterletName)
	c.remove(t, names.KlusterletName)
	c.expectShared(t, "second")
	c.quiet(t)
	c.expectShared(t, "second")
	c.expectApplied(t, "second", operatorv1.ReasonKlusterletApplied)
}

// TestSecondKlusterletInANamespaceIsRefused also has one that an earlier release
// had applied, which goes without taking the first one's namespace with it.
func TestSecondKlusterletInANamespaceIsRefused(t *testing.T) {
	t.Parallel()
	c := start(t, nil)
	c.awaitCondition(t, "Applied", operatorv1.ReasonKlusterletApplied)
	before, err := c.agent(t)
	if err != nil {
		t.Fatal(err)
	}
	c.add(t, "applied-before", names.AgentNamespace, names.FinalizerKlusterlet)
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{
		Name: "open-cluster-management:applied-before-registration:agent", Labels: map[string]string{names.LabelCreatedByKlusterlet: "applied-before"},
	}}
	if _, err := (&apply.Applier{Client: c.client, FieldManager: klusterlet.FieldManager}).Apply(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	c.add(t, "second", names.AgentNamespace)
	for _, name := range []string{"applied-before", "second"} {
		c.expectApplied(t, name, klusterlet.ReasonNamespaceInUse)
	}
	c.quiet(t)
	c.remove(t, "applied-before")
	if err := wantGone(c.client.Get(t.Context(), client.ObjectKeyFromObject(role), role)); err != nil {
		t.Errorf("a role of the removed Klusterlet: %v", err)
	}
	c.quiet(t)
	after, err := c.agent(t)
	if err != nil || after.UID != before.UID {
		t.Errorf("the first one's agent: %v", err)
	}
	c.remove(t, names.KlusterletName)
	c.expectApplied(t, "second", operatorv1.ReasonKlusterletApplied)
}

// TestDeletionDoesNotWaitForADeadNode has an agent on a node whose kubelet never
// reports that it stopped.
func TestDeletionDoesNotWaitForADeadNode(t *testing.T) {
	t.Parallel()
	c := install(t, nil)
	later := clocktesting.NewFakePassiveClock(clock.RealClock{}.Now())
	c.run(t, func(conf *klusterlet.Config, _ *rest.Config) { conf.Clock = later })
	c.awaitCondition(t, "Applied", operatorv1.ReasonKlusterletApplied)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "dead"}}
	if err := c.client.Create(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{}
	eventually(t, "the agent is on the node", func() error {
		var pods corev1.PodList
		if err := c.client.List(t.Context(), &pods, client.InNamespace(names.AgentNamespace)); err != nil {
			return err
		}
		if len(pods.Items) == 0 {
			return errors.New("no pod")
		}
		pod = &pods.Items[0]
		if pod.Spec.NodeName != "" {
			return nil
		}
		return c.client.SubResource("binding").Create(t.Context(), pod, &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: node.Name}})
	})
	if err := c.client.Delete(t.Context(), c.klusterlet(t)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the pod is waited for", func() error {
		applied := apimeta.FindStatusCondition(c.klusterlet(t).Status.Conditions, "Applied")
		if applied.Message != fmt.Sprintf("Waiting for pod %s/%s to stop", pod.Namespace, pod.Name) {
			return errors.New(applied.Message)
		}
		return nil
	})
	c.quiet(t)
	if err := c.client.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); err != nil {
		t.Fatalf("a pod that may still stop: %v", err)
	}
	later.SetTime(pod.DeletionTimestamp.Add(time.Minute))
	eventually(t, "the Klusterlet goes", func() error {
		return wantGone(c.client.Get(t.Context(), client.ObjectKey{Name: names.KlusterletName}, &operatorv1.Klusterlet{}))
	})
	if err := c.client.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); !apierrors.IsNotFound(err) {
		t.Errorf("the pod: %v", err)
	}
}
