package klusterlet_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/operator/klusterlet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installation"
)

func (c *cluster) workAgent(t *testing.T) (*appsv1.Deployment, error) {
	t.Helper()
	var d appsv1.Deployment
	key := client.ObjectKey{Namespace: names.AgentNamespace, Name: names.WorkAgentDeployment(names.KlusterletName)}
	err := c.client.Get(t.Context(), key, &d)
	return &d, err
}

// awaitWorkAgent waits until the work agent has a number of replicas.
func (c *cluster) awaitWorkAgent(t *testing.T, replicas int32) *appsv1.Deployment {
	t.Helper()
	var d *appsv1.Deployment
	eventually(t, fmt.Sprintf("the work agent has %d replicas", replicas), func() (err error) {
		if d, err = c.workAgent(t); err == nil && *d.Spec.Replicas != replicas {
			err = fmt.Errorf("it has %d", *d.Spec.Replicas)
		}
		return err
	})
	return d
}

// reportHub writes the agent's condition about the hub.
func (c *cluster) reportHub(t *testing.T, status metav1.ConditionStatus, reason string) {
	t.Helper()
	obj := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": []any{map[string]any{
		"type": names.ConditionHubConnectionDegraded, "status": string(status), "reason": reason,
		"message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z",
	}}}}}
	obj.SetAPIVersion("operator.open-cluster-management.io/v1")
	obj.SetKind("Klusterlet")
	obj.SetName(names.KlusterletName)
	err := c.client.Status().Apply(t.Context(), client.ApplyConfigurationFromUnstructured(obj), client.FieldOwner("ocm.agent"), client.ForceOwnership)
	if err != nil {
		t.Fatal(err)
	}
}

// expectCondition waits for a condition with a message.
func (c *cluster) expectCondition(t *testing.T, kind string, status metav1.ConditionStatus, message string) {
	t.Helper()
	eventually(t, kind+" "+string(status), func() error {
		got := apimeta.FindStatusCondition(c.klusterlet(t).Status.Conditions, kind)
		if got == nil || got.Status != status || !strings.Contains(got.Message, message) {
			return fmt.Errorf("it is %+v", got)
		}
		return nil
	})
}

// TestWorkAgentWaitsForTheHub: the work agent has no pods before there is a hub
// kubeconfig, and keeps them when the hub is away.
func TestWorkAgentWaitsForTheHub(t *testing.T) {
	t.Parallel()
	c := start(t, nil)
	c.awaitCondition(t, "Applied", operatorv1.ReasonKlusterletApplied)
	c.awaitWorkAgent(t, 0)
	c.ready(t)
	c.awaitCondition(t, "Available", operatorv1.ReasonKlusterletAvailable)
	c.expectCondition(t, "WorkDesiredDegraded", metav1.ConditionFalse, "starts when the hub has accepted the cluster")

	c.reportHub(t, metav1.ConditionTrue, "BootstrapSecretFunctional,HubKubeConfigSecretMissing")
	c.quiet(t)
	c.awaitWorkAgent(t, 0)
	c.reportHub(t, metav1.ConditionFalse, names.ReasonHubConnectionFunctional)
	d := c.awaitWorkAgent(t, 1)
	want := []string{
		"controller", "work", "--bind-address=$(POD_IP)", "--spoke-cluster-name=c1", "--agent-id=" + string(c.klusterlet(t).UID),
		"--workload-source-driver=kube", "--workload-source-config=/spoke/hub-kubeconfig/kubeconfig",
	}
	if diff := cmp.Diff(want, d.Spec.Template.Spec.Containers[0].Args); diff != "" {
		t.Errorf("args (-want +got):\n%s", diff)
	}
	c.expectCondition(t, "WorkDesiredDegraded", metav1.ConditionTrue, "0 of 1 pods of klusterlet-work-agent are available")
	c.expectCondition(t, "Available", metav1.ConditionFalse, "no pod of klusterlet-work-agent is available")
	eventually(t, "the work agent is available", func() error {
		c.ready(t)
		d, err := c.workAgent(t)
		if err == nil && d.Status.AvailableReplicas == 0 {
			err = errors.New("no pod is")
		}
		return err
	})
	c.expectCondition(t, "WorkDesiredDegraded", metav1.ConditionFalse, "deployments replicas are desired: 1")
	c.expectCondition(t, "Available", metav1.ConditionTrue, "deployments are ready: klusterlet-registration-agent,klusterlet-work-agent")

	c.reportHub(t, metav1.ConditionTrue, "BootstrapSecretError,HubKubeConfigUnauthorized")
	c.quiet(t)
	c.awaitWorkAgent(t, 1)
	c.testWorkSettings(t)
}

// testWorkSettings changes the flags of the work agent.
func (c *cluster) testWorkSettings(t *testing.T) {
	t.Helper()
	settings := func(eviction, sync time.Duration) {
		c.update(t, func(k *operatorv1.Klusterlet) {
			k.Spec.WorkImagePullSpec = "ours:v2"
			k.Spec.WorkConfiguration = &operatorv1.WorkAgentConfiguration{
				AppliedManifestWorkEvictionGracePeriod: &metav1.Duration{Duration: eviction}, StatusSyncInterval: &metav1.Duration{Duration: sync},
				FeatureGates: []operatorv1.FeatureGate{{Feature: "RawFeedbackJsonString", Mode: operatorv1.FeatureGateModeTypeEnable}},
			}
		})
	}
	expect := func(args ...string) {
		t.Helper()
		eventually(t, "the work agent runs with "+strings.Join(args, " "), func() error {
			d, err := c.workAgent(t)
			if err != nil {
				return err
			}
			container := d.Spec.Template.Spec.Containers[0]
			if !slices.Equal(container.Args[len(container.Args)-len(args):], args) || container.Image != "ours:v2" {
				return fmt.Errorf("it runs %s with %v", container.Image, container.Args)
			}
			return nil
		})
	}
	settings(30*time.Minute, 20*time.Second)
	expect("--feature-gates=RawFeedbackJsonString=true", "--appliedmanifestwork-eviction-grace-period=30m0s", "--status-sync-interval=20s")
	settings(time.Minute, 0)
	expect("--feature-gates=RawFeedbackJsonString=true", "--appliedmanifestwork-eviction-grace-period=1m0s")
}

// join runs join again with other permissions of the work agent.
func (c *cluster) join(t *testing.T, permissions names.WorkPermissions) {
	t.Helper()
	objs, err := manifests.RenderKlusterletOperator(manifests.KlusterletOperator{
		Version: "0.1.0", Operator: manifests.Pod{Image: "ours:v1", Replicas: 1}, Work: permissions,
		Spec: operatorv1.KlusterletSpec{ClusterName: "c1", Namespace: names.AgentNamespace},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, obj := range objs {
		if obj.GetKind() == "Klusterlet" {
			obj.SetAnnotations(map[string]string{names.AnnotationWorkPermissions: string(permissions)})
		}
	}
	installation.Apply(t, c.client, "ocm.join", objs)
}

// annotate changes an annotation of the Klusterlet, as any of its editors can.
func (c *cluster) annotate(t *testing.T, key, value string) {
	t.Helper()
	c.update(t, func(k *operatorv1.Klusterlet) {
		if k.Annotations == nil {
			k.Annotations = map[string]string{}
		}
		k.Annotations[key] = value
	})
}

// may reports whether the work agent has a right in the namespace default.
func (c *cluster) may(t *testing.T, verb, group, resource string) bool {
	t.Helper()
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:               names.ServiceAccountUser(names.AgentNamespace, names.WorkAgentServiceAccount(names.KlusterletName)),
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: "default", Verb: verb, Group: group, Resource: resource},
	}}
	if err := c.client.Create(t.Context(), review); err != nil {
		t.Fatal(err)
	}
	return review.Status.Allowed
}

// expectRights waits until the work agent may read, write, and become everything, or
// not.
func (c *cluster) expectRights(t *testing.T, read, write, everything bool) {
	t.Helper()
	eventually(t, "the work agent has its rights", func() error {
		got := [...]bool{
			c.may(t, "list", "", "pods"), c.may(t, "create", "apps", "deployments"), c.may(t, "escalate", rbacv1.GroupName, "clusterroles"),
			c.may(t, "impersonate", "", "serviceaccounts"), c.may(t, "create", "work.open-cluster-management.io", "appliedmanifestworks"),
		}
		if want := [...]bool{read, write, everything, everything, true}; got != want {
			return fmt.Errorf("list pods, create deployments, escalate, impersonate, record: %v, want %v", got, want)
		}
		return nil
	})
}

// TestWorkPermissions: the work agent may do what join said and no more, whatever
// the Klusterlet asks for, and nothing of it stays.
func TestWorkPermissions(t *testing.T) {
	t.Parallel()
	c := start(t, func(v *manifests.KlusterletOperator) { v.Work = names.WorkPermissionsView })
	// Without the annotation a Klusterlet asks for OCM's default.
	c.awaitCondition(t, "Applied", operatorv1.ReasonKlusterletApplyFailed)
	c.join(t, names.WorkPermissionsView)
	c.expectApplied(t, names.KlusterletName, operatorv1.ReasonKlusterletApplied)
	c.expectRights(t, true, false, false)

	c.annotate(t, names.AnnotationWorkPermissions, "admin")
	c.expectCondition(t, "Applied", metav1.ConditionFalse, "work agent: ")
	c.expectRights(t, true, false, false)
	c.update(t, func(k *operatorv1.Klusterlet) { k.Spec.RegistrationImagePullSpec = "ours:v2" })
	c.agentRuns(t, "ours:v2") // The registration agent does not have to wait.

	c.annotate(t, names.AnnotationWorkPermissions, "a/b")
	c.expectApplied(t, names.KlusterletName, klusterlet.ReasonSettingInvalid)
	c.expectCondition(t, "Applied", metav1.ConditionFalse, "Nothing of the work agent is changed until then")
	c.expectRights(t, true, false, false)

	c.join(t, names.WorkPermissionsAdmin)
	c.expectApplied(t, names.KlusterletName, operatorv1.ReasonKlusterletApplied)
	c.expectRights(t, true, true, true)

	deployer := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "deployer"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"create"}}},
	}
	if err := c.client.Create(t.Context(), deployer); err != nil {
		t.Fatal(err)
	}
	c.join(t, "deployer")
	c.expectRights(t, false, true, false)
	c.join(t, names.WorkPermissionsNone)
	c.expectRights(t, false, false, false)

	c.annotate(t, names.AnnotationWorkAgent, "false")
	eventually(t, "the work agent is left out", func() error {
		_, err := c.workAgent(t)
		return wantGone(err)
	})
	c.expectCondition(t, "WorkDesiredDegraded", metav1.ConditionFalse, "left out")
	eventually(t, "its account has no rights", func() error {
		if c.may(t, "create", "work.open-cluster-management.io", "appliedmanifestworks") {
			return errors.New("it may still record what it applied")
		}
		return nil
	})

	c.join(t, "deployer")
	c.annotate(t, names.AnnotationWorkAgent, "true")
	c.expectRights(t, false, true, false)
	c.remove(t, names.KlusterletName)
	for _, list := range []client.ObjectList{&rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBindingList{}, &appsv1.DeploymentList{}} {
		if err := c.client.List(t.Context(), list, client.HasLabels{names.LabelCreatedByKlusterlet}); err != nil {
			t.Fatal(err)
		}
		if n := apimeta.LenList(list); n != 0 {
			t.Errorf("%d left in %T", n, list)
		}
	}
	if err := c.client.Get(t.Context(), client.ObjectKeyFromObject(deployer), deployer); err != nil {
		t.Error(errors.Join(errors.New("the ClusterRole of the user"), err))
	}
}

// TestSingletonDeploysNothing: a Klusterlet of the mode in which OCM runs both
// agents in one pod is not half applied.
func TestSingletonDeploysNothing(t *testing.T) {
	t.Parallel()
	c := start(t, func(v *manifests.KlusterletOperator) { v.Spec.DeployOption.Mode = operatorv1.InstallModeSingleton })
	c.expectCondition(t, "Applied", metav1.ConditionFalse, "The install mode Singleton is not supported")
	if _, err := c.workAgent(t); wantGone(err) != nil {
		t.Errorf("work agent: %v", err)
	}
	c.update(t, func(k *operatorv1.Klusterlet) { k.Spec.DeployOption.Mode = operatorv1.InstallModeDefault })
	c.awaitWorkAgent(t, 0)
}
