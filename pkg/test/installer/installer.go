//go:build linux

package installer

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/discovery"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/buildinfo"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/kubeconfig"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pause"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/scheme"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/lookup"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/operator/clustermanager"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/operator/klusterlet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/origin"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/drivers"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controllers"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/interrupt"
)

// TheirVersion is the version that OCM's operator records in CRDs.
const TheirVersion = "1.3.1"

// Image is the image that replaces.
const Image = "example/kubectl-ocm:v1"

// Patience is far above what anything takes.
const Patience = time.Minute

// New returns an installer of a control plane that says nothing, and skips what --force
// skips.
func New(t *testing.T, cp *controlplane.ControlPlane) *install.Runner {
	t.Helper()
	c, err := client.NewWithWatch(cp.Config(t), client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	disco, err := discovery.NewDiscoveryClientForConfig(cp.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	return &install.Runner{
		Client: c, Discovery: disco, Clock: clock.RealClock{}, Target: cp.Config(t).Host,
		// What --force sets.
		Skip: install.Checks(),
		Step: func(ctx context.Context, _ string, fn func(context.Context, install.Say) error) error {
			return fn(ctx, func(string, ...any) {})
		},
	}
}

// Contents returns the content that an installation would write.
func Contents(t *testing.T, c client.Client) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, kind := range []string{
		"apps/v1 Deployment", "v1 Namespace", "v1 Secret", "v1 ServiceAccount", "v1 Service",
		"rbac.authorization.k8s.io/v1 ClusterRole", "rbac.authorization.k8s.io/v1 ClusterRoleBinding",
		"apiextensions.k8s.io/v1 CustomResourceDefinition", "admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration",
		"operator.open-cluster-management.io/v1 ClusterManager", "operator.open-cluster-management.io/v1 Klusterlet",
	} {
		version, name, _ := strings.Cut(kind, " ")
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(version)
		list.SetKind(name + "List")
		if err := c.List(t.Context(), list); err != nil && !lookup.Gone(err) {
			t.Fatal(err)
		}
		for i := range list.Items {
			obj := &list.Items[i]
			if !named(obj) {
				continue
			}
			// The control plane's own controllers write statuses.
			unstructured.RemoveNestedField(obj.Object, "status")
			unstructured.RemoveNestedField(obj.Object, "metadata", "annotations", "deployment.kubernetes.io/revision")
			if len(obj.GetAnnotations()) == 0 {
				obj.SetAnnotations(nil)
			}
			obj.SetManagedFields(nil)
			obj.SetResourceVersion("")
			content, err := obj.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			out[kind+" "+obj.GetNamespace()+"/"+obj.GetName()] = string(content)
		}
	}
	return out
}

// named reports whether an object is OCM's by its name, and not one that the
// control plane itself makes.
func named(obj client.Object) bool {
	path := obj.GetNamespace() + "/" + obj.GetName()
	return obj.GetName() != "default" && (strings.Contains(path, "open-cluster-management") ||
		obj.GetName() == names.ClusterManagerOperator || obj.GetName() == names.KlusterletOperator)
}

// Repeat repeats something until the test ends.
func Repeat(t *testing.T, something func(ctx context.Context)) {
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

// BeKubelet makes every Pod ready.
func BeKubelet(t *testing.T, c client.Client) {
	t.Helper()
	Repeat(t, func(ctx context.Context) {
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

// RunOperator runs an operator of ours when its pod would.
func RunOperator(t *testing.T, cp *controlplane.ControlPlane, c client.Client, operator string, options func() (cache.Options, error), setup func(manager.Manager) error) {
	t.Helper()
	start := make(chan struct{})
	begin := sync.OnceFunc(func() { close(start) })
	Repeat(t, func(ctx context.Context) {
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

// SetUpHub sets up our hub operator.
func SetUpHub(mgr manager.Manager) error {
	return clustermanager.Setup(mgr, clustermanager.Config{
		Namespace: names.OperatorNamespace, Image: Image, Version: buildinfo.Version, Replicas: 1,
		ControlPlane: labels.Everything(), Drivers: drivers.All(), Clock: clock.RealClock{},
	})
}

// SetUpAgent sets up our operator of agents.
func SetUpAgent(mgr manager.Manager) error {
	return klusterlet.Setup(mgr, klusterlet.Config{
		Namespace: names.OperatorNamespace, Image: Image, Version: buildinfo.Version, Replicas: 1,
		ControlPlane: labels.Everything(), Drivers: drivers.All(), Clock: clock.RealClock{},
	})
}

// CutOff returns the runner of a command that is cut off after so many writes, as if it
// was killed, and what it wrote.
func CutOff(t *testing.T, cp *controlplane.ControlPlane, after int) (*install.Runner, *interrupt.Writes) {
	t.Helper()
	writes := interrupt.After(after, "", func(write, _ string) bool {
		return !strings.Contains(write, " /apis/authorization.k8s.io/") // Questions are no writes.
	})
	config := cp.Config(t)
	config.Wrap(writes.Wrap)
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	r := New(t, cp)
	r.Client, r.Skip = c, nil
	return r, writes
}

// Command is init or join.
type Command func(ctx context.Context, r *install.Runner) error

// InPieces runs a command until it ends, cut off after every one to three writes, and
// returns what it wrote. In between, check is called. The run after the last one has
// nothing to write.
func InPieces(t *testing.T, cp *controlplane.ControlPlane, run Command, check func()) (all []string) {
	t.Helper()
	const enough = 200
	for n := range enough {
		r, writes := CutOff(t, cp, 1+n%3)
		err := Soon(t, r, run)
		all = append(all, writes.About("")...)
		check()
		switch {
		case err == nil:
			ExpectNothingWritten(t, cp, run)
			return all
		case !errors.Is(err, interrupt.ErrCut):
			t.Fatalf("after %v: %v: %s", all, err, install.Unmet(err))
		}
	}
	t.Fatalf("the command does not end: %v", all)
	return nil
}

// Soon runs a command, which has to end.
func Soon(t *testing.T, r *install.Runner, run Command) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	return run(ctx, r)
}

// ExpectNothingWritten runs a command that has nothing left to do.
func ExpectNothingWritten(t *testing.T, cp *controlplane.ControlPlane, run Command) {
	t.Helper()
	const never = 0
	r, writes := CutOff(t, cp, never)
	if err := Soon(t, r, run); err != nil || len(writes.About("")) > 0 {
		t.Errorf("run once more: %v, and wrote %v", err, writes.About(""))
	}
}

// ApplyWork does what an agent does that applied a ConfigMap for a work.
func ApplyWork(t *testing.T, c client.Client, name, agentID string) {
	t.Helper()
	work := &workv1.AppliedManifestWork{
		ObjectMeta: metav1.ObjectMeta{Name: "hash-" + name, Finalizers: []string{names.FinalizerAppliedManifestWork}},
		Spec:       workv1.AppliedManifestWorkSpec{HubHash: "hash", AgentID: agentID, ManifestWorkName: name},
	}
	if err := c.Create(t.Context(), work); err != nil {
		t.Fatal(err)
	}
	owner := metav1.OwnerReference{APIVersion: workv1.GroupVersion.String(), Kind: "AppliedManifestWork", Name: work.Name, UID: work.UID}
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, OwnerReferences: []metav1.OwnerReference{owner}}}
	if err := c.Create(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	work.Status.AppliedResources = []workv1.AppliedManifestResourceMeta{{
		ResourceIdentifier: workv1.ResourceIdentifier{Resource: "configmaps", Namespace: "default", Name: name}, Version: "v1", UID: string(config.UID),
	}}
	if err := c.Status().Update(t.Context(), work); err != nil {
		t.Fatal(err)
	}
}

// EncodeHub returns a kubeconfig of a hub at an address.
func EncodeHub(t *testing.T, server string) []byte {
	t.Helper()
	data, err := kubeconfig.Hub{ClusterName: "hub", Cluster: clientcmdapi.Cluster{Server: server}}.EncodeBootstrap()
	if err != nil {
		t.Fatal(err)
	}
	return data
}
