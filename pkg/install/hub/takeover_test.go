//go:build linux

package hub_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/bootstrap"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/buildinfo"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/hub"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/operator/clustermanager"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/origin"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installation"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installer"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/upstream"
)

// theirHub is a hub of OCM that runs, with its operator, and what watches it.
func theirHub(t *testing.T) (*controlplane.ControlPlane, hub.Runner) {
	t.Helper()
	cp := controlplane.Lease(t)
	r := hub.Runner{Runner: installer.New(t, cp)}
	r.Skip = nil
	upstream.Hub(t, r.Client)
	installer.BeKubelet(t, r.Client)
	upstream.Operate(t, r.Client, names.ClusterManagerOperator, upstream.HubObjects(t))
	var crds apiextensionsv1.CustomResourceDefinitionList
	if err := r.Client.List(t.Context(), &crds); err != nil {
		t.Fatal(err)
	}
	for i := range crds.Items {
		crd := &crds.Items[i]
		patch := client.MergeFrom(crd.DeepCopy())
		metav1.SetMetaDataAnnotation(&crd.ObjectMeta, names.AnnotationVersion, installer.TheirVersion)
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

func takeOverOf(accepted ...string) hub.Values {
	return hub.Values{Workload: install.Workload{Image: installer.Image}, TakeOver: &install.TakeOver{Accepted: accepted}}
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
	installer.RunOperator(t, cp, r.Client, names.ClusterManagerOperator, clustermanager.CacheOptions, installer.SetUpHub)
	all := installer.InPieces(t, cp, func(ctx context.Context, r *install.Runner) error {
		_, err := hub.Runner{Runner: r}.Init(ctx, takeOverOf("placements", "cluster-sets"), info)
		return err
	}, func() {})
	expectOrder(t, all)
	expectOurHub(t, r)
}

// expectChangesRefused checks that changes are refused before anything is written.
func expectChangesRefused(t *testing.T, r hub.Runner, info bootstrap.ClusterInfo) {
	t.Helper()
	before := installer.Contents(t, r.Client)
	_, err := r.Init(t.Context(), takeOverOf(), info)
	if _, ok := errors.AsType[*install.PreflightError](err); !ok || !strings.Contains(err.Error(), "--accept-changes=cluster-sets,placements") {
		t.Errorf("got %v", err)
	}
	plan, err := r.Plan(t.Context(), takeOverOf(), info)
	if err != nil || !slices.Equal(plan.Unaccepted(), []string{"cluster-sets", "placements"}) || len(plan.Refused) > 0 {
		t.Errorf("the plan is %+v, %v", plan, err)
	}
	if diff := cmp.Diff(before, installer.Contents(t, r.Client)); diff != "" {
		t.Errorf("something was written (-before +after):\n%s", diff)
	}
}

// awaitPods waits until a Deployment of the hub has a pod that is ready.
func awaitPods(t *testing.T, c client.Client, deployment string) {
	t.Helper()
	await.Completion(t, installer.Patience, func(ctx context.Context) string {
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
	installer.Repeat(t, func(ctx context.Context) {
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
func expectOurHub(t *testing.T, r hub.Runner) {
	t.Helper()
	found, err := origin.Hub(t.Context(), r.Client)
	if err != nil || found != nil {
		t.Errorf("left: %v, %v", found, err)
	}
	plan, err := r.Plan(t.Context(), takeOverOf("placements", "cluster-sets"), bootstrap.ClusterInfo{})
	if err != nil || plan.From != "" {
		t.Errorf("there is still a plan: %+v, %v", plan, err)
	}
	var list appsv1.DeploymentList
	if err := r.Client.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		if spec := &list.Items[i].Spec.Template.Spec; len(spec.Containers) != 1 || spec.Containers[0].Image != installer.Image {
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
