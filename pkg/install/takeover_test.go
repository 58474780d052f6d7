//go:build linux

package install_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	operatorv1 "open-cluster-management.io/api/operator/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apply"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/bootstrap"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/buildinfo"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pause"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/scheme"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/operator/clustermanager"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/operator/klusterlet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/origin"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controllers"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installation"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/interrupt"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/upstream"
)

// theirVersion is what OCM's operator writes onto CRDs.
const theirVersion = "1.3.1"

// ours is the image that replaces.
const ours = "example/kubectl-ocm:v1"

// patience is far above what anything takes.
const patience = time.Minute

// run repeats something until the test ends.
func run(t *testing.T, something func(ctx context.Context)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() {
		for ctx.Err() == nil {
			something(ctx)
			pause.For(ctx, clock.RealClock{}, 20*time.Millisecond)
		}
	})
	t.Cleanup(func() {
		cancel()
		done.Wait()
	})
}

// beKubelet makes every Pod ready.
func beKubelet(t *testing.T, c client.Client) {
	t.Helper()
	run(t, func(ctx context.Context) {
		var pods corev1.PodList
		if err := c.List(ctx, &pods); err != nil {
			return
		}
		for i := range pods.Items {
			pod := &pods.Items[i]
			if pod.Status.Phase == corev1.PodRunning {
				continue
			}
			pod.Status.Phase = corev1.PodRunning
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
			_ = c.Status().Update(ctx, pod)
		}
	})
}

// runOperator runs an operator of ours when its pod would.
func runOperator(t *testing.T, cp *controlplane.ControlPlane, c client.Client, operator string, options func() (cache.Options, error), setup func(manager.Manager) error) {
	t.Helper()
	start := make(chan struct{})
	begin := sync.OnceFunc(func() { close(start) })
	run(t, func(ctx context.Context) {
		var d appsv1.Deployment
		err := c.Get(ctx, client.ObjectKey{Namespace: names.OperatorNamespace, Name: operator}, &d)
		if err == nil && origin.Ours(&d.Spec.Template.Spec) && d.Status.AvailableReplicas > 0 {
			begin()
		}
	})
	objects, err := options()
	if err != nil {
		t.Fatal(err)
	}
	connection := cp.ConfigForAccount(t, names.OperatorNamespace, operator)
	controllers.Start(t, connection, manager.Options{Cache: objects}, func(_ context.Context, mgr manager.Manager) error {
		return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
			select {
			case <-ctx.Done():
				return nil
			case <-start:
				return setup(mgr)
			}
		}))
	})
}

func setUpHub(mgr manager.Manager) error {
	return clustermanager.Setup(mgr, clustermanager.Config{
		Namespace: names.OperatorNamespace, Image: ours, Version: buildinfo.Version, Replicas: 1,
		ControlPlane: labels.Everything(), Clock: clock.RealClock{},
	})
}

func setUpAgent(mgr manager.Manager) error {
	return klusterlet.Setup(mgr, klusterlet.Config{
		Namespace: names.OperatorNamespace, Image: ours, Version: buildinfo.Version, Replicas: 1,
		ControlPlane: labels.Everything(), Clock: clock.RealClock{},
	})
}

// cutOff returns the runner of a command that is cut off after so many writes, as if it
// was killed, and what it wrote.
func cutOff(t *testing.T, cp *controlplane.ControlPlane, after int) (*install.Runner, *interrupt.Writes) {
	t.Helper()
	writes := interrupt.After(after, "", func(write, _ string) bool {
		return !strings.Contains(write, " /apis/authorization.k8s.io/") // Questions are no writes.
	})
	config := cp.Config()
	config.Wrap(writes.Wrap)
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	r := newRunner(t, cp)
	r.Client, r.Skip = c, nil
	return r, writes
}

// command is init or join.
type command func(ctx context.Context, r *install.Runner) error

// inPieces runs a command until it ends, cut off after every one to three writes, and
// returns what it wrote. In between, check is called. The run after the last one has
// nothing to write.
func inPieces(t *testing.T, cp *controlplane.ControlPlane, run command, check func()) (all []string) {
	t.Helper()
	const enough = 200
	for n := range enough {
		r, writes := cutOff(t, cp, 1+n%3)
		err := soon(t, r, run)
		all = append(all, writes.About("")...)
		check()
		switch {
		case err == nil:
			expectNothingWritten(t, cp, run)
			return all
		case !errors.Is(err, interrupt.ErrCut):
			t.Fatalf("after %v: %v: %s", all, err, install.Unmet(err))
		}
	}
	t.Fatalf("the command does not end: %v", all)
	return nil
}

// soon runs a command, which has to end.
func soon(t *testing.T, r *install.Runner, run command) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	return run(ctx, r)
}

// expectNothingWritten runs a command that has nothing left to do.
func expectNothingWritten(t *testing.T, cp *controlplane.ControlPlane, run command) {
	t.Helper()
	const never = 0
	r, writes := cutOff(t, cp, never)
	if err := soon(t, r, run); err != nil || len(writes.About("")) > 0 {
		t.Errorf("run once more: %v, and wrote %v", err, writes.About(""))
	}
}

// theirHub is a hub of OCM that runs, with its operator, and what watches it.
func theirHub(t *testing.T) (*controlplane.ControlPlane, *install.Runner) {
	t.Helper()
	cp := controlplane.Start(t)
	r := newRunner(t, cp)
	r.Skip = nil
	upstream.Hub(t, r.Client)
	beKubelet(t, r.Client)
	upstream.Operate(t, r.Client, names.ClusterManagerOperator, upstream.HubObjects(t))
	var crds apiextensionsv1.CustomResourceDefinitionList
	if err := r.Client.List(t.Context(), &crds); err != nil {
		t.Fatal(err)
	}
	for i := range crds.Items {
		crd := &crds.Items[i]
		patch := client.MergeFrom(crd.DeepCopy())
		metav1.SetMetaDataAnnotation(&crd.ObjectMeta, names.AnnotationVersion, theirVersion)
		if err := r.Client.Patch(t.Context(), crd, patch); err != nil {
			t.Fatal(err)
		}
	}
	installation.Create(t, r.Client,
		&clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "all"}},
		clusterSet("default"), clusterSet("edge"))
	return cp, r
}

func clusterSet(name string) client.Object {
	set := &unstructured.Unstructured{}
	set.SetAPIVersion("cluster.open-cluster-management.io/v1beta2")
	set.SetKind("ManagedClusterSet")
	set.SetName(name)
	return set
}

func takeOverOf(accepted ...string) install.Hub {
	return install.Hub{Workload: install.Workload{Image: ours}, TakeOver: &install.TakeOver{Accepted: accepted}}
}

// TestTakeOverOfAHub kills init after every one to three writes, and runs it again, with
// OCM's operator restoring what is deleted before it has stopped.
func TestTakeOverOfAHub(t *testing.T) {
	t.Parallel()
	cp, r := theirHub(t)
	info := bootstrap.ClusterInfo{Server: "https://hub.example"}
	expectChangesRefused(t, r, info)
	awaitPods(t, r.Client, names.HubAddOnWebhookDeployment(names.ClusterManagerName))
	watchWebhook(t, r.Client)
	runOperator(t, cp, r.Client, names.ClusterManagerOperator, clustermanager.CacheOptions, setUpHub)
	all := inPieces(t, cp, func(ctx context.Context, r *install.Runner) error {
		_, err := r.Init(ctx, takeOverOf("placements", "cluster-sets"), info)
		return err
	}, func() {})
	expectOrder(t, all)
	expectOurHub(t, r)
}

// expectChangesRefused checks that changes are refused before anything is written.
func expectChangesRefused(t *testing.T, r *install.Runner, info bootstrap.ClusterInfo) {
	t.Helper()
	before := contents(t, r.Client)
	_, err := r.Init(t.Context(), takeOverOf(), info)
	if _, ok := errors.AsType[*install.PreflightError](err); !ok || !strings.Contains(err.Error(), "--accept-changes=cluster-sets,placements") {
		t.Errorf("got %v", err)
	}
	plan, err := r.PlanInit(t.Context(), takeOverOf(), info)
	if err != nil || !slices.Equal(plan.Unaccepted(), []string{"cluster-sets", "placements"}) || len(plan.Refused) > 0 {
		t.Errorf("the plan is %+v, %v", plan, err)
	}
	if diff := cmp.Diff(before, contents(t, r.Client)); diff != "" {
		t.Errorf("something was written (-before +after):\n%s", diff)
	}
}

// awaitPods waits until a Deployment of the hub has a pod that is ready.
func awaitPods(t *testing.T, c client.Client, deployment string) {
	t.Helper()
	await.Completion(t, patience, func(ctx context.Context) string {
		if ready(ctx, c, deployment) == 0 {
			return "a pod of " + deployment
		}
		return ""
	})
}

// ready counts the pods with the label of a webhook that are ready; -1 if that cannot
// be said.
func ready(ctx context.Context, c client.Client, app string) int {
	var pods corev1.PodList
	if err := c.List(ctx, &pods, client.InNamespace(names.HubNamespace), client.MatchingLabels{"app": app}); err != nil {
		return -1
	}
	n := 0
	for i := range pods.Items {
		if pods.Items[i].Status.Phase == corev1.PodRunning && pods.Items[i].DeletionTimestamp.IsZero() {
			n++
		}
	}
	return n
}

// watchWebhook has the test fail when no pod converts add-ons.
func watchWebhook(t *testing.T, c client.Client) {
	t.Helper()
	run(t, func(ctx context.Context) {
		if ready(ctx, c, names.HubAddOnWebhookDeployment(names.ClusterManagerName)) == 0 {
			t.Error("no pod answers the API server's requests to convert add-ons")
		}
	})
}

// expectOrder checks what has to come before what.
func expectOrder(t *testing.T, all []string) {
	t.Helper()
	deployments := "/apis/apps/v1/namespaces/"
	first := func(part string) int {
		i := slices.IndexFunc(all, func(w string) bool { return strings.Contains(w, part) })
		if i < 0 {
			t.Errorf("nothing was written with %q", part)
		}
		return i
	}
	order := []string{
		"DELETE " + deployments + "open-cluster-management/deployments/cluster-manager",
		"DELETE " + deployments + "open-cluster-management-hub/deployments/cluster-manager-registration-controller",
		"DELETE " + deployments + "open-cluster-management-hub/deployments/cluster-manager-addon-webhook",
		"PATCH /apis/operator.open-cluster-management.io/v1/clustermanagers/cluster-manager",
		"PATCH " + deployments + "open-cluster-management/deployments/cluster-manager",
		"DELETE /apis/admissionregistration.k8s.io/v1/",
		"DELETE " + deployments + "open-cluster-management-hub/deployments/cluster-manager-registration-webhook",
		"DELETE /apis/rbac.authorization.k8s.io/v1/clusterroles/open-cluster-management:cluster-manager-placement-controller",
	}
	for i := 1; i < len(order); i++ {
		if first(order[i-1]) > first(order[i]) {
			t.Errorf("%q came after %q: %v", order[i-1], order[i], all)
		}
	}
}

// expectOurHub checks that nothing of OCM's components is left, and that users lost
// nothing.
func expectOurHub(t *testing.T, r *install.Runner) {
	t.Helper()
	found, err := origin.Hub(t.Context(), r.Client)
	if err != nil || found != nil {
		t.Errorf("left: %v, %v", found, err)
	}
	plan, err := r.PlanInit(t.Context(), takeOverOf("placements", "cluster-sets"), bootstrap.ClusterInfo{})
	if err != nil || plan.From != "" {
		t.Errorf("there is still a plan: %+v, %v", plan, err)
	}
	var list appsv1.DeploymentList
	if err := r.Client.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		if spec := &list.Items[i].Spec.Template.Spec; len(spec.Containers) != 1 || spec.Containers[0].Image != ours {
			t.Errorf("Deployment %s runs %+v", list.Items[i].Name, spec.Containers)
		}
	}
	if err := r.Client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "all"}, &clusterv1beta1.Placement{}); err != nil {
		t.Error(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := r.Client.Get(t.Context(), client.ObjectKey{Name: "managedclusters.cluster.open-cluster-management.io"}, &crd); err != nil {
		t.Fatal(err)
	}
	if crd.Annotations[names.AnnotationVersion] != buildinfo.Version {
		t.Errorf("the CRD is of %q", crd.Annotations[names.AnnotationVersion])
	}
}

// TestTakeOverOfAnAgent replaces an agent of the mode Singleton that a Helm release
// installed, with a credential and something that a work deployed: at once, and by a
// command that is killed after every one to three writes. Both end in the same state, and
// touch nothing of the hub's.
func TestTakeOverOfAnAgent(t *testing.T) {
	t.Parallel()
	atOnce := replacedAgent(t, func(cp *controlplane.ControlPlane, run command, _ func()) {
		r := newRunner(t, cp)
		r.Skip = nil
		if err := soon(t, r, run); err != nil {
			t.Fatalf("%v: %s", err, install.Unmet(err))
		}
	})
	killed := replacedAgent(t, func(cp *controlplane.ControlPlane, run command, check func()) { inPieces(t, cp, run, check) })
	if diff := cmp.Diff(atOnce, killed); diff != "" {
		t.Errorf("(-at once +in pieces):\n%s", diff)
	}
}

// replacedAgent returns what a cluster has after an agent of OCM was replaced there.
func replacedAgent(t *testing.T, replace func(cp *controlplane.ControlPlane, run command, check func())) map[string]string {
	t.Helper()
	cp := controlplane.Start(t)
	c := cp.Client(t)
	theirAgent(t, c)
	before := untouched(t, c)
	runOperator(t, cp, c, names.KlusterletOperator, klusterlet.CacheOptions, setUpAgent)
	reportConnected(t, c)

	wanted := install.Klusterlet{Workload: install.Workload{Image: ours}, TakeOver: &install.TakeOver{}}
	join := func(ctx context.Context, r *install.Runner) error {
		_, err := r.Join(ctx, wanted, nil)
		return err
	}
	r, writes := cutOff(t, cp, 1)
	if err := soon(t, r, join); err == nil || !strings.Contains(err.Error(), "--accept-changes=helm-release,mode") || len(writes.About("")) > 0 {
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
	beKubelet(t, c)
	upstream.Operate(t, c, names.KlusterletOperator, []client.Object{single})
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: names.AgentNamespace, Name: names.HubKubeconfigSecret},
		Data:       map[string][]byte{names.KeyKubeconfig: []byte("{}"), names.KeyClusterName: []byte("cluster1"), names.KeyAgentName: []byte("a1")},
	}
	if err := c.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	applyWork(t, c, "app", string(liveKlusterlet(t, c).UID))
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
	if k.Spec.DeployOption.Mode != operatorv1.InstallModeDefault || k.Spec.WorkImagePullSpec != ours || k.Spec.ClusterName != "cluster1" {
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
	out := contents(t, c)
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
	run(t, func(ctx context.Context) {
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
