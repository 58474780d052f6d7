//go:build linux

package agent_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "open-cluster-management.io/api/operator/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apply"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/agent"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/operator/klusterlet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/origin"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installer"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/upstream"
)

// TestTakeOverOfAnAgent replaces an agent of the mode Singleton that a Helm release
// installed, with a credential and something that a work deployed: at once, and by a
// command that is killed after every one to three writes. Both end in the same state, and
// touch nothing of the hub's.
func TestTakeOverOfAnAgent(t *testing.T) {
	t.Parallel()
	atOnce := replacedAgent(t, func(cp *controlplane.ControlPlane, run installer.Command, _ func()) {
		r := installer.New(t, cp)
		r.Skip = nil
		if err := installer.Soon(t, r, run); err != nil {
			t.Fatalf("%v: %s", err, install.Unmet(err))
		}
	})
	killed := replacedAgent(t, func(cp *controlplane.ControlPlane, run installer.Command, check func()) {
		installer.InPieces(t, cp, run, check)
	})
	if diff := cmp.Diff(atOnce, killed); diff != "" {
		t.Errorf("(-at once +in pieces):\n%s", diff)
	}
}

// replacedAgent returns what a cluster has after an agent of OCM was replaced there.
func replacedAgent(t *testing.T, replace func(cp *controlplane.ControlPlane, run installer.Command, check func())) map[string]string {
	t.Helper()
	cp := controlplane.Lease(t)
	c := cp.Client(t)
	theirAgent(t, c)
	before := untouched(t, c)
	installer.RunOperator(t, cp, c, names.KlusterletOperator, klusterlet.CacheOptions, installer.SetUpAgent)
	reportConnected(t, c)

	wanted := agent.Values{Workload: install.Workload{Image: installer.Image}, TakeOver: &install.TakeOver{}}
	join := func(ctx context.Context, r *install.Runner) error {
		_, err := agent.Runner{Runner: r}.Install(ctx, wanted, nil)
		return err
	}
	r, writes := installer.CutOff(t, cp, 1)
	if err := installer.Soon(t, r, join); err == nil || !strings.Contains(err.Error(), "--accept-changes=helm-release,mode") || len(writes.About("")) > 0 {
		t.Fatalf("got %v, and %v", err, writes.About(""))
	}
	wanted.TakeOver.Accepted = []string{"mode", "helm-release"}
	replace(cp, join, func() {
		if diff := cmp.Diff(before, untouched(t, c)); diff != "" {
			t.Errorf("(-before +after):\n%s", diff)
		}
	})
	if diff := cmp.Diff(before, untouched(t, c)); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
	expectOurAgent(t, c)
	return lasting(t, c)
}

// theirAgent is an agent of OCM that runs, with its operator.
func theirAgent(t *testing.T, c client.Client) {
	t.Helper()
	upstream.Klusterlet(t, c, "cluster1")
	single := makeSingleton(t, c)
	installer.BeKubelet(t, c)
	upstream.Operate(t, c, names.KlusterletOperator, []client.Object{single})
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: names.AgentNamespace, Name: names.HubKubeconfigSecret},
		Data:       map[string][]byte{names.KeyKubeconfig: installer.EncodeHub(t, "https://hub.example.com"), names.KeyClusterName: []byte("cluster1"), names.KeyAgentName: []byte("a1")},
	}
	if err := c.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	installer.ApplyWork(t, c, "app", string(liveKlusterlet(t, c).UID))
	installByHelm(t, c, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: names.OperatorNamespace, Name: names.KlusterletOperator}})
	installByHelm(t, c, liveKlusterlet(t, c))
	for _, release := range []string{"agent", "other"} {
		if err := c.Create(t.Context(), helmSecret(release)); err != nil {
			t.Fatal(err)
		}
	}
}

// installByHelm gives an object what Helm gives to those of a release.
func installByHelm(t *testing.T, c client.Client, obj client.Object) {
	t.Helper()
	patch := `{"metadata": {"annotations": {"meta.helm.sh/release-name": "agent", "meta.helm.sh/release-namespace": "default"}}}`
	if err := c.Patch(t.Context(), obj, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
}

// helmSecret is where Helm keeps a revision of a release.
func helmSecret(release string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "sh.helm.release.v1." + release + ".v1",
			Labels: map[string]string{"owner": "helm", "name": release, "status": "deployed", "version": "1"},
		},
		Type: "helm.sh/release.v1",
	}
}

// expectOurAgent checks that nothing of OCM's agent is left, and what is there instead.
func expectOurAgent(t *testing.T, c client.Client) {
	t.Helper()
	if found, err := origin.Agent(t.Context(), c); err != nil || found != nil {
		t.Errorf("left: %v, %v", found, err)
	}
	k := liveKlusterlet(t, c)
	if k.Spec.DeployOption.Mode != operatorv1.InstallModeDefault || k.Spec.WorkImagePullSpec != installer.Image || k.Spec.ClusterName != "cluster1" {
		t.Errorf("the Klusterlet is %+v", k.Spec)
	}
	var secrets corev1.SecretList
	if err := c.List(t.Context(), &secrets, client.MatchingLabels{"owner": "helm"}); err != nil {
		t.Fatal(err)
	}
	if len(secrets.Items) != 1 || secrets.Items[0].Labels["name"] != "other" {
		t.Errorf("left of Helm: %+v", secrets.Items)
	}
	var work appsv1.Deployment
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: names.AgentNamespace, Name: upstream.WorkAgent}, &work); err != nil {
		t.Fatal(err)
	}
	if args := work.Spec.Template.Spec.Containers[0].Args; !slices.Contains(args, "--agent-id="+string(k.UID)) {
		t.Errorf("the work agent runs %v", args)
	}
}

// lasting are the contents of a cluster without what differs between two clusters.
func lasting(t *testing.T, c client.Client) map[string]string {
	t.Helper()
	uid := string(liveKlusterlet(t, c).UID)
	out := installer.Contents(t, c)
	for key, content := range out {
		obj := &unstructured.Unstructured{}
		if err := obj.UnmarshalJSON([]byte(strings.ReplaceAll(content, uid, "UID"))); err != nil {
			t.Fatal(err)
		}
		for _, field := range []string{"uid", "creationTimestamp", "generation"} {
			unstructured.RemoveNestedField(obj.Object, "metadata", field)
		}
		for annotation := range obj.GetAnnotations() {
			if strings.HasPrefix(annotation, apply.HashAnnotationPrefix) { // The UID is part of it.
				unstructured.RemoveNestedField(obj.Object, "metadata", "annotations", annotation)
			}
		}
		stable, err := obj.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		out[key] = string(stable)
	}
	return out
}

// makeSingleton makes the agent one of the mode Singleton: its registration agent is
// the one Deployment. It returns what OCM's operator applies instead of the two.
func makeSingleton(t *testing.T, c client.Client) client.Object {
	t.Helper()
	k := liveKlusterlet(t, c)
	patch := client.MergeFrom(k.DeepCopy())
	k.Spec.DeployOption.Mode = operatorv1.InstallModeSingleton
	if err := c.Patch(t.Context(), k, patch); err != nil {
		t.Fatal(err)
	}
	single := &unstructured.Unstructured{}
	for _, obj := range upstream.KlusterletObjects(t, "cluster1") {
		u, ok := obj.(*unstructured.Unstructured)
		if !ok || u.GetKind() != "Deployment" || u.GetNamespace() != names.AgentNamespace {
			continue
		}
		if err := c.Delete(t.Context(), u.DeepCopy()); err != nil {
			t.Fatal(err)
		}
		single = u
	}
	single.SetName(names.KlusterletName + "-agent")
	_ = unstructured.SetNestedStringMap(single.Object, map[string]string{"app": "klusterlet-agent"}, "metadata", "labels")
	_ = unstructured.SetNestedStringMap(single.Object, map[string]string{"app": "klusterlet-agent"}, "spec", "selector", "matchLabels")
	_ = unstructured.SetNestedStringMap(single.Object, map[string]string{"app": "klusterlet-agent"}, "spec", "template", "metadata", "labels")
	return single
}

func liveKlusterlet(t *testing.T, c client.Client) *operatorv1.Klusterlet {
	t.Helper()
	k := &operatorv1.Klusterlet{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: names.KlusterletName}, k); err != nil {
		t.Fatal(err)
	}
	return k
}

// untouched is what must stay as it is.
func untouched(t *testing.T, c client.Client) map[string]string {
	t.Helper()
	out := map[string]string{}
	for key, obj := range map[client.ObjectKey]client.Object{
		{Namespace: "default", Name: "app"}:                                         &corev1.ConfigMap{},
		{Namespace: names.AgentNamespace, Name: names.HubKubeconfigSecret}:          &corev1.Secret{},
		{Namespace: names.AgentNamespace, Name: names.BootstrapHubKubeconfigSecret}: &corev1.Secret{},
		{Name: "hash-app"}: &workv1.AppliedManifestWork{},
	} {
		if err := c.Get(t.Context(), key, obj); err != nil {
			t.Fatal(err)
		}
		out[key.String()] = string(obj.GetUID()) + " " + obj.GetResourceVersion()
	}
	return out
}

// reportConnected does what the agent reports when it reaches the hub.
func reportConnected(t *testing.T, c client.Client) {
	t.Helper()
	installer.Repeat(t, func(ctx context.Context) {
		k := &operatorv1.Klusterlet{}
		if err := c.Get(ctx, client.ObjectKey{Name: names.KlusterletName}, k); err != nil {
			return
		}
		patch := client.MergeFrom(k.DeepCopy())
		changed := apimeta.SetStatusCondition(&k.Status.Conditions, metav1.Condition{
			Type: names.ConditionHubConnectionDegraded, Status: metav1.ConditionFalse, Reason: "HubConnectionFunctional", ObservedGeneration: k.Generation,
		})
		if changed {
			_ = c.Status().Patch(ctx, k, patch)
		}
	})
}
