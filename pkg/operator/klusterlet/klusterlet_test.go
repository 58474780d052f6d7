package klusterlet_test

import (
	stdcmp "cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/operator/internal/operand"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/operator/klusterlet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/drivers"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controllers"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installation"
)

const patience = await.Patience

// cluster is a managed cluster on which join has installed everything, with
// the operator running under the rights that join gave it.
type cluster struct {
	client client.Client
	plane  *controlplane.ControlPlane
	// writes counts the operator's requests that change something.
	writes *atomic.Int64
	// operator is the one that was started last.
	operator *klusterlet.Observed
}

// start installs what join does and runs the operator.
func start(t *testing.T, change func(*manifests.KlusterletOperator)) *cluster {
	t.Helper()
	c := install(t, change)
	c.run(t, nil)
	return c
}

// install does what join does.
func install(t *testing.T, change func(*manifests.KlusterletOperator)) *cluster {
	t.Helper()
	cp := controlplane.Lease(t)
	values := manifests.KlusterletOperator{
		Version:  "0.1.0",
		Operator: manifests.Pod{Image: "ours:v1", Replicas: 1},
		Work:     names.WorkPermissionsAdmin,
		Spec:     operatorv1.KlusterletSpec{ClusterName: "c1", Namespace: names.AgentNamespace},
	}
	if change != nil {
		change(&values)
	}
	objs, err := manifests.RenderKlusterletOperator(values)
	if err != nil {
		t.Fatal(err)
	}
	admin := cp.Client(t)
	installation.Apply(t, admin, "ocm.join", objs)
	return &cluster{client: admin, plane: cp, writes: &atomic.Int64{}}
}

// run starts the operator under the rights that join gave it, and counts the
// writes it sends. It returns what stops it.
func (c *cluster) run(t *testing.T, change func(*klusterlet.Config, *rest.Config)) func() {
	t.Helper()
	connection := c.plane.ConfigForAccount(t, names.OperatorNamespace, names.KlusterletOperator)
	connection.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			if req.Method != http.MethodGet && !req.URL.Query().Has("dryRun") {
				c.writes.Add(1)
			}
			return next.RoundTrip(req)
		})
	})
	conf := klusterlet.Config{
		Namespace: names.OperatorNamespace, Image: "ours:v1", Version: "0.1.0",
		ControlPlane: labels.Nothing(), Drivers: drivers.All(), Clock: clock.RealClock{},
	}
	if change != nil {
		change(&conf, connection)
	}
	objects, err := klusterlet.CacheOptions()
	if err != nil {
		t.Fatal(err)
	}
	return controllers.Start(t, connection, manager.Options{Cache: objects}, func(_ context.Context, mgr manager.Manager) (err error) {
		c.operator, err = klusterlet.SetupObserved(mgr, conf)
		return err
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	await.Success(t, patience, what, func(context.Context) error { return check() })
}

func (c *cluster) klusterlet(t *testing.T) *operatorv1.Klusterlet {
	t.Helper()
	var k operatorv1.Klusterlet
	if err := c.client.Get(t.Context(), client.ObjectKey{Name: names.KlusterletName}, &k); err != nil {
		t.Fatal(err)
	}
	return &k
}

func (c *cluster) agent(t *testing.T) (*appsv1.Deployment, error) {
	t.Helper()
	var d appsv1.Deployment
	err := c.client.Get(t.Context(), client.ObjectKey{
		Namespace: names.AgentNamespace, Name: names.RegistrationAgentDeployment(names.KlusterletName),
	}, &d)
	return &d, err
}

// awaitCondition waits for a condition with a reason of the current generation.
func (c *cluster) awaitCondition(t *testing.T, kind, reason string) {
	t.Helper()
	eventually(t, kind+" "+reason, func() error {
		k := c.klusterlet(t)
		got := apimeta.FindStatusCondition(k.Status.Conditions, kind)
		if got == nil || got.Reason != reason || got.ObservedGeneration != k.Generation {
			return fmt.Errorf("conditions are %+v", k.Status.Conditions)
		}
		return nil
	})
}

func (c *cluster) update(t *testing.T, change func(*operatorv1.Klusterlet)) {
	t.Helper()
	eventually(t, "update Klusterlet", func() error {
		k := c.klusterlet(t)
		change(k)
		return c.client.Update(t.Context(), k)
	})
}

// ready does what a kubelet would, until the Deployment controller finds the
// agent available.
func (c *cluster) ready(t *testing.T) {
	t.Helper()
	eventually(t, "the agent is available", func() error {
		var pods corev1.PodList
		if err := c.client.List(t.Context(), &pods, client.InNamespace(names.AgentNamespace)); err != nil {
			return err
		}
		for i := range pods.Items {
			pod := &pods.Items[i]
			pod.Status.Phase = corev1.PodRunning
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
			if err := c.client.Status().Update(t.Context(), pod); err != nil {
				return err
			}
		}
		d, err := c.agent(t)
		if err == nil && (d.Status.ObservedGeneration < d.Generation || d.Status.AvailableReplicas < 1 || d.Status.Replicas != d.Status.UpdatedReplicas) {
			err = fmt.Errorf("status %+v", d.Status)
		}
		return err
	})
}

// quiet waits until the operator has nothing to do and returns the number of
// writes so far: it has seen all that is there, and a look at each Klusterlet
// changes nothing.
func (c *cluster) quiet(t *testing.T) int64 {
	t.Helper()
	var writes int64
	eventually(t, "the operator comes to rest", func() error {
		writes = c.writes.Load()
		if err := c.operator.Idle(t.Context(), c.client); err != nil {
			return err
		}
		if now := c.writes.Load(); now != writes {
			return fmt.Errorf("it wrote %d times", now-writes)
		}
		return nil
	})
	return writes
}

func TestKlusterletLife(t *testing.T) {
	t.Parallel()
	c := start(t, nil)

	c.awaitCondition(t, "Applied", operatorv1.ReasonKlusterletApplied)
	c.awaitCondition(t, "Available", operatorv1.ReasonKlusterletNoAvailablePods)
	c.ready(t)
	c.awaitCondition(t, "Available", operatorv1.ReasonKlusterletAvailable)
	c.awaitCondition(t, "RegistrationDesiredDegraded", operatorv1.ReasonKlusterletDeploymentsFunctional)

	k := c.klusterlet(t)
	if g := k.Status.Generations; len(g) != 2 || g[0].Name != "klusterlet-registration-agent" || g[1].Name != "klusterlet-work-agent" {
		t.Errorf("generations: %+v", k.Status.Generations)
	}
	if len(k.Status.RelatedResources) < 8 {
		t.Errorf("related resources: %+v", k.Status.RelatedResources)
	}
	d, err := c.agent(t)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"controller", "agent", "--bind-address=$(POD_IP)", "--klusterlet-name=klusterlet",
		"--spoke-cluster-name=c1", "--bootstrap-kubeconfig=/spoke/bootstrap/kubeconfig",
	}
	if diff := cmp.Diff(want, d.Spec.Template.Spec.Containers[0].Args); diff != "" {
		t.Errorf("args (-want +got):\n%s", diff)
	}

	// One after the other, on one cluster: each begins where the last one ended.
	c.testQuietPass(t)
	c.testDrift(t)
	c.testForeignCondition(t)
	c.testPublishIssuer(t)
	c.testSpecChange(t)
	c.testPrune(t)
	c.testDeletion(t)
}

// testQuietPass shows that a pass that finds nothing to do writes nothing.
func (c *cluster) testQuietPass(t *testing.T) {
	t.Helper()
	before := c.quiet(t)
	// An annotation makes it look without changing what it wants.
	touched := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"touched":"yes"}}}`))
	if err := c.client.Patch(t.Context(), c.klusterlet(t), touched); err != nil {
		t.Fatal(err)
	}
	if after := c.quiet(t); after != before {
		t.Errorf("%d writes", after-before)
	}
}

func (c *cluster) testDrift(t *testing.T) {
	t.Helper()
	var role rbacv1.ClusterRole
	key := client.ObjectKey{Name: "open-cluster-management:klusterlet-registration:agent"}
	if err := c.client.Get(t.Context(), key, &role); err != nil {
		t.Fatal(err)
	}
	rules := role.DeepCopy().Rules
	role.Rules = nil
	if err := c.client.Update(t.Context(), &role); err != nil {
		t.Fatal(err)
	}
	d, err := c.agent(t)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.client.Delete(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	eventually(t, "repair", func() error {
		if err := c.client.Get(t.Context(), key, &role); err != nil {
			return err
		}
		if diff := cmp.Diff(rules, role.Rules); diff != "" {
			return errors.New(diff)
		}
		again, err := c.agent(t)
		if err == nil && again.UID == d.UID {
			return errors.New("the Deployment was not made again")
		}
		return err
	})
	c.ready(t)
}

func (c *cluster) testForeignCondition(t *testing.T) {
	t.Helper()
	c.reportHub(t, metav1.ConditionFalse, names.ReasonHubConnectionFunctional)
	c.update(t, func(k *operatorv1.Klusterlet) { k.Spec.PriorityClassName = "high" })
	c.awaitCondition(t, "Applied", operatorv1.ReasonKlusterletApplied)
	if got := apimeta.FindStatusCondition(c.klusterlet(t).Status.Conditions, "HubConnectionDegraded"); got == nil || got.Message != "m" {
		t.Errorf("the agent's condition is %+v", got)
	}
}

func (c *cluster) testSpecChange(t *testing.T) {
	t.Helper()
	before, err := c.agent(t)
	if err != nil {
		t.Fatal(err)
	}
	c.update(t, func(k *operatorv1.Klusterlet) {
		k.Spec.RegistrationImagePullSpec = "mirror/ours:v2"
		k.Spec.NodePlacement.NodeSelector = map[string]string{"disk": "ssd"}
		k.Spec.ExternalServerURLs = []operatorv1.ServerURL{{URL: "https://a:6443"}, {URL: "https://b:6443"}}
		k.Spec.RegistrationConfiguration = &operatorv1.RegistrationConfiguration{
			ClientCertExpirationSeconds: 3600,
			ClusterAnnotations:          map[string]string{"agent.open-cluster-management.io/x": "1", "other/y": "2"},
			ClusterLabels:               map[string]string{"example.com/env": "prod", "bad": "a/b", "cluster.open-cluster-management.io/clusterset": "x"},
			FeatureGates: []operatorv1.FeatureGate{
				{Feature: "ClusterClaim", Mode: operatorv1.FeatureGateModeTypeDisable},
				{Feature: "Nonsense", Mode: operatorv1.FeatureGateModeTypeEnable},
			},
		}
	})
	c.awaitCondition(t, "ValidFeatureGates", "InvalidFeatureGatesExisting")
	eventually(t, "new agent", func() error {
		d, err := c.agent(t)
		if err != nil {
			return err
		}
		if d.UID != before.UID {
			t.Fatal("the Deployment was recreated")
		}
		pod := d.Spec.Template.Spec
		args := strings.Join(pod.Containers[0].Args, " ")
		for _, want := range []string{
			"--spoke-external-server-urls=https://a:6443,https://b:6443", "--feature-gates=ClusterClaim=false",
			"--client-cert-expiration-seconds=3600", "--cluster-annotations=agent.open-cluster-management.io/x=1",
			"--cluster-labels=example.com/env=prod",
		} {
			if !strings.Contains(args, want) {
				return fmt.Errorf("no %s in %s", want, args)
			}
		}
		if strings.Contains(args, "other/y") || strings.Contains(args, "a/b") || strings.Contains(args, "clusterset") || strings.Contains(args, "Nonsense") {
			t.Fatalf("args: %s", args)
		}
		if pod.Containers[0].Image != "mirror/ours:v2" || pod.NodeSelector["disk"] != "ssd" || pod.PriorityClassName != "high" {
			return fmt.Errorf("pod: %+v", pod)
		}
		return nil
	})
}

// testPublishIssuer gives the agent its flag and the one right it needs, and
// takes both away again.
func (c *cluster) testPublishIssuer(t *testing.T) {
	t.Helper()
	own := rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"}, ResourceNames: []string{"klusterlet-registration-sa"}, Verbs: []string{"create"},
	}
	for _, tc := range []struct{ annotation, flag string }{{"true", "--publish-issuer"}, {"false", "--publish-issuer=false"}, {"", ""}} {
		c.update(t, func(k *operatorv1.Klusterlet) {
			k.Annotations = map[string]string{names.AnnotationPublishIssuer: tc.annotation}
		})
		eventually(t, "the annotation "+tc.annotation, func() error {
			d, err := c.agent(t)
			if err != nil {
				return err
			}
			args := slices.DeleteFunc(d.Spec.Template.Spec.Containers[0].Args, func(arg string) bool { return !strings.Contains(arg, "publish-issuer") })
			if strings.Join(args, " ") != tc.flag {
				return fmt.Errorf("args %v", args)
			}
			var role rbacv1.Role
			if err := c.client.Get(t.Context(), client.ObjectKey{Namespace: names.AgentNamespace, Name: "open-cluster-management:management:klusterlet-registration:agent"}, &role); err != nil {
				return err
			}
			granted := slices.ContainsFunc(role.Rules, func(r rbacv1.PolicyRule) bool { return cmp.Equal(r, own) })
			if granted != (tc.annotation == "true") {
				return fmt.Errorf("rules %+v", role.Rules)
			}
			return nil
		})
	}
}

func (c *cluster) testPrune(t *testing.T) {
	t.Helper()
	key := client.ObjectKey{Name: "open-cluster-management:klusterlet-registration:addon-management"}
	if err := c.client.Get(t.Context(), key, &rbacv1.ClusterRole{}); err != nil {
		t.Fatal(err)
	}
	c.update(t, func(k *operatorv1.Klusterlet) {
		k.Spec.RegistrationConfiguration.FeatureGates = []operatorv1.FeatureGate{
			{Feature: "AddonManagement", Mode: operatorv1.FeatureGateModeTypeDisable},
		}
	})
	eventually(t, "rights of a disabled feature are withdrawn", func() error {
		return wantGone(c.client.Get(t.Context(), key, &rbacv1.ClusterRole{}))
	})
	c.update(t, func(k *operatorv1.Klusterlet) { k.Spec.Namespace = "open-cluster-management-elsewhere" })
	eventually(t, "the former namespace goes", func() error {
		return wantGone(c.client.Get(t.Context(), client.ObjectKey{Name: names.AgentNamespace}, &corev1.Namespace{}))
	})
}

func (c *cluster) testDeletion(t *testing.T) {
	t.Helper()
	credential := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: names.AddOnHubKubeconfigSecret("one"),
		Labels:      map[string]string{names.LabelAddOnCredential: stdcmp.Or(c.klusterlet(t).Spec.Namespace, names.AgentNamespace)},
		Annotations: map[string]string{names.AnnotationCredentialAddOn: "one"},
	}}
	if err := c.client.Create(t.Context(), credential); err != nil {
		t.Fatal(err)
	}
	if err := c.client.Delete(t.Context(), c.klusterlet(t)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the Klusterlet goes", func() error {
		return wantGone(c.client.Get(t.Context(), client.ObjectKey{Name: names.KlusterletName}, &operatorv1.Klusterlet{}))
	})
	if err := wantGone(c.client.Get(t.Context(), client.ObjectKeyFromObject(credential), credential)); err != nil {
		t.Errorf("an add-on's credential: %v", err)
	}
	for _, gone := range []client.ObjectList{&rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBindingList{}, &corev1.NamespaceList{}, &appsv1.DeploymentList{}} {
		if err := c.client.List(t.Context(), gone, client.HasLabels{names.LabelCreatedByKlusterlet}); err != nil {
			t.Fatal(err)
		}
		if n := apimeta.LenList(gone); n != 0 {
			t.Errorf("%d left in %T", n, gone)
		}
	}
	crd := &metav1.PartialObjectMetadata{}
	crd.SetGroupVersionKind(crdKind())
	if err := c.client.Get(t.Context(), client.ObjectKey{Name: "clusterclaims.cluster.open-cluster-management.io"}, crd); err != nil {
		t.Errorf("a CRD with users' data was deleted: %v", err)
	}
	if _, ok := crd.Annotations[names.AnnotationVersion]; ok {
		t.Error("the CRD still carries our version")
	}
}

func TestUnsupportedIsReportedAndCreatesNoAgent(t *testing.T) {
	t.Parallel()
	c := start(t, func(v *manifests.KlusterletOperator) { v.Spec.DeployOption.Mode = operatorv1.InstallModeHosted })
	c.awaitCondition(t, "Applied", operand.ReasonModeNotSupported)
	if _, err := c.agent(t); !apierrors.IsNotFound(err) {
		t.Errorf("agent: %v", err)
	}
	c.update(t, func(k *operatorv1.Klusterlet) {
		k.Spec.DeployOption.Mode = operatorv1.InstallModeDefault
		k.Spec.RegistrationConfiguration = &operatorv1.RegistrationConfiguration{RegistrationDriver: operatorv1.RegistrationDriver{AuthType: "grpc"}}
	})
	c.awaitCondition(t, "Applied", klusterlet.ReasonDriverNotSupported)
	c.testAddOnDriver(t)
	if err := c.client.Delete(t.Context(), c.klusterlet(t)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it can be deleted", func() error {
		return wantGone(c.client.Get(t.Context(), client.ObjectKey{Name: names.KlusterletName}, &operatorv1.Klusterlet{}))
	})
}

func wantGone(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err == nil {
		return errors.New("it still exists")
	}
	return err
}

func crdKind() schema.GroupVersionKind {
	return apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition")
}
