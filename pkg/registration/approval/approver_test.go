package approval_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	certificatesv1 "k8s.io/api/certificates/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/finding"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/scheme"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/approval"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installation"
)

const patience = await.Patience

// hub is the API server of a hub whose controllers do not run: what changes on it,
// an Approver or the test has written, or the signer of certificates.
type hub struct {
	client.WithWatch

	// bootstrap is the client of an agent that has no credential yet.
	bootstrap client.Client
}

func newHub(t *testing.T) *hub {
	t.Helper()
	cp := controlplane.Lease(t)
	admin, err := client.NewWithWatch(cp.Config(t), client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	h := &hub{WithWatch: admin}
	installation.Hub(t, admin, manifests.Hub{})
	objs, err := manifests.RenderHubOperator(manifests.HubOperator{})
	installation.Some(t, admin, objs, err, "ClusterRole", "ClusterRoleBinding")
	config := rest.CopyConfig(cp.Config(t))
	config.Impersonate = rest.ImpersonationConfig{
		UserName: names.BootstrapServiceAccountUser,
		Groups:   []string{"system:authenticated", "system:serviceaccounts", "system:serviceaccounts:" + names.OperatorNamespace},
	}
	if h.bootstrap, err = client.New(config, client.Options{Scheme: h.Scheme(), Mapper: h.RESTMapper()}); err != nil {
		t.Fatal(err)
	}
	return h
}

// approver returns an Approver for the hub that waits.
func (h *hub) approver(t *testing.T, choice approval.Choice) *approval.Approver {
	t.Helper()
	return &approval.Approver{
		Client: h.WithWatch, Clock: clock.RealClock{}, Name: "test", Choice: choice, Wait: true, Say: t.Logf, Warn: t.Logf,
	}
}

// register creates the ManagedCluster and a request, as an agent does.
func (h *hub) register(t *testing.T, name string) approval.Request {
	t.Helper()
	if err := client.IgnoreAlreadyExists(h.Create(t.Context(), &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}})); err != nil {
		t.Fatal(err)
	}
	created := installation.Request(t, h.bootstrap, name, "agent")
	return h.request(t, name, created.Name)
}

func (h *hub) request(t *testing.T, cluster, name string) approval.Request {
	t.Helper()
	requests, err := approval.Requests(t.Context(), h.WithWatch, cluster)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range requests {
		if r.Name == name {
			return r
		}
	}
	t.Fatalf("cluster %s has no request %s: %+v", cluster, name, requests)
	return approval.Request{}
}

func (h *hub) cluster(t *testing.T, name string) *clusterv1.ManagedCluster {
	t.Helper()
	cluster := &clusterv1.ManagedCluster{}
	if err := h.Get(t.Context(), client.ObjectKey{Name: name}, cluster); err != nil {
		t.Fatal(err)
	}
	return cluster
}

// within runs an Approver as long as a test may wait.
func within(t *testing.T, a *approval.Approver, name string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	return a.Run(ctx, name, t.Logf)
}

func TestApprover(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	for name, test := range map[string]func(*testing.T, *hub){
		"accepted":      accepts,
		"conflict":      leavesConflicts,
		"denied":        denies,
		"not-there":     stopsWithoutWait,
		"out-of-time":   saysWhatItWaitedFor,
		"dry-run":       writesNothingInADryRun,
		"registered-by": reportsWhoRegistered,
		"brought":       showsWhatAClusterBrings,
		"discarded":     discardsWhatAClusterBrings,
		"present-key":   approvesThePresentKey,
		"given-up":      awaitsTheRequest,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, h)
		})
	}
}

// accepts follows a cluster from its request to its certificate. A second run
// writes nothing.
func accepts(t *testing.T, h *hub) {
	t.Helper()
	request := h.register(t, "accepted")
	for range 2 {
		before := h.cluster(t, "accepted").ResourceVersion
		accepted := h.cluster(t, "accepted").Spec.HubAcceptsClient
		if err := within(t, h.approver(t, approval.Choice{}), "accepted"); err != nil {
			t.Fatal(err)
		}
		after := h.cluster(t, "accepted")
		if !after.Spec.HubAcceptsClient || accepted && after.ResourceVersion != before {
			t.Errorf("accepted %t, version %s after %s", after.Spec.HubAcceptsClient, after.ResourceVersion, before)
		}
		request = h.request(t, "accepted", request.Name)
		if request.State != approval.Issued || request.Object.Status.Conditions[0].Reason != "test Approve" {
			t.Errorf("the request is %s: %+v", request.State, request.Object.Status.Conditions)
		}
	}
}

// leavesConflicts is about two keys for one name: nothing is written until one is
// chosen.
func leavesConflicts(t *testing.T, h *hub) {
	t.Helper()
	first, second := h.register(t, "conflict"), h.register(t, "conflict")
	err := within(t, h.approver(t, approval.Choice{}), "conflict")
	if decided, ok := errors.AsType[*finding.Error](err); !ok || decided.Kind != finding.Blocked || decided.Hint() == "" {
		t.Errorf("got %v", err)
	}
	if h.cluster(t, "conflict").Spec.HubAcceptsClient || h.request(t, "conflict", first.Name).State != approval.Pending {
		t.Error("something was written")
	}
	if err := within(t, h.approver(t, approval.Choice{Fingerprint: second.Fingerprint}), "conflict"); err != nil {
		t.Fatal(err)
	}
	if got := h.request(t, "conflict", first.Name).State; got != approval.Denied {
		t.Errorf("the other request is %s", got)
	}
	if got := h.request(t, "conflict", second.Name).State; got != approval.Issued {
		t.Errorf("the chosen request is %s", got)
	}
}

func denies(t *testing.T, h *hub) {
	t.Helper()
	request := h.register(t, "denied")
	for range 2 {
		if err := within(t, h.approver(t, approval.Choice{Deny: true}), "denied"); err != nil {
			t.Fatal(err)
		}
		if h.cluster(t, "denied").Spec.HubAcceptsClient || h.request(t, "denied", request.Name).State != approval.Denied {
			t.Error("the cluster is not denied")
		}
	}
}

func stopsWithoutWait(t *testing.T, h *hub) {
	t.Helper()
	a := h.approver(t, approval.Choice{})
	a.Wait = false
	err := within(t, a, "not-there")
	if awaited, ok := errors.AsType[*approval.AwaitError](err); !ok || awaited.Awaited != approval.AwaitsRegistration || awaited.Cause != nil {
		t.Errorf("got %v", err)
	}
}

func saysWhatItWaitedFor(t *testing.T, h *hub) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	err := h.approver(t, approval.Choice{}).Run(ctx, "out-of-time", func(string, ...any) { cancel() })
	if awaited, ok := errors.AsType[*approval.AwaitError](err); !ok || awaited.Awaited != approval.AwaitsRegistration || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func writesNothingInADryRun(t *testing.T, h *hub) {
	t.Helper()
	request := h.register(t, "dry-run")
	a := h.approver(t, approval.Choice{})
	a.DryRun = approval.DryRunClient
	var said int
	a.Say = func(string, ...any) { said++ }
	if err := within(t, a, "dry-run"); err != nil {
		t.Fatal(err)
	}
	if h.cluster(t, "dry-run").Spec.HubAcceptsClient || h.request(t, "dry-run", request.Name).State != approval.Pending || said != 1 {
		t.Errorf("the cluster was changed, or %d lines were printed", said)
	}
}

// approvesThePresentKey is about an agent that makes another key, as for another address of
// the hub, and requests a certificate for it while an Approver decides on the first.
func approvesThePresentKey(t *testing.T, h *hub) {
	t.Helper()
	first := h.register(t, "present-key")
	var second approval.Request
	present := first.Fingerprint
	a := h.approver(t, approval.Choice{})
	a.Client = interceptor.NewClient(h.WithWatch, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if _, ok := list.(*certificatesv1.CertificateSigningRequestList); ok && second.Name == "" {
				second = h.register(t, "present-key")
				present = second.Fingerprint
			}
			return c.List(ctx, list, opts...)
		},
	})
	a.Own = func(context.Context) (string, error) { return present, nil }
	if err := within(t, a, "present-key"); err != nil {
		t.Fatal(err)
	}
	if got := h.request(t, "present-key", second.Name).State; got != approval.Issued {
		t.Errorf("the request of the agent's present key is %s", got)
	}
	if got := h.request(t, "present-key", first.Name).State; got != approval.Denied {
		t.Errorf("the request of the key that it has no more is %s", got)
	}
}

// reportsWhoRegistered reads who made a request from what the API server
// authenticated.
func reportsWhoRegistered(t *testing.T, h *hub) {
	t.Helper()
	agent := h.register(t, "registered-by")
	other := installation.Request(t, h.WithWatch, "registered-by", "agent")
	stranger := h.request(t, "registered-by", other.Name)
	if !agent.Bootstrap || agent.Requester != names.BootstrapServiceAccountUser || stranger.Bootstrap || stranger.Rejection != "" {
		t.Errorf("the agent's %+v, the stranger's %+v", agent, stranger)
	}
	// The conflict is none: the other requester is no bootstrap identity.
	if err := within(t, h.approver(t, approval.Choice{}), "registered-by"); err != nil {
		t.Fatal(err)
	}
	conditions := h.request(t, "registered-by", other.Name).Object.Status.Conditions
	if len(conditions) != 0 {
		t.Errorf("the other request has the conditions %v", conditions)
	}
}

// laden is a cluster that brings all that one can, as one from before admission limited it.
func laden(t *testing.T, h *hub, name string) {
	t.Helper()
	cluster := &clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{"env": "prod"}, Finalizers: []string{"example.com/hold", names.FinalizerManifestWork},
			Annotations: map[string]string{"open-cluster-management.io/image-registries": "a\u202eb", names.AnnotationClusterID: "id", "agent.open-cluster-management.io/x": "y"},
		},
		Spec: clusterv1.ManagedClusterSpec{
			LeaseDurationSeconds: 7200, Taints: []clusterv1.Taint{{Key: "k", Value: "v", Effect: clusterv1.TaintEffectNoSelect}},
			ManagedClusterClientConfigs: []clusterv1.ClientConfig{{URL: "https://api.example"}},
		},
	}
	if err := h.Create(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		_ = h.Patch(context.WithoutCancel(t.Context()), cluster, patch)
	})
	h.register(t, name)
}

// showsWhatAClusterBrings: it is printed once, before the cluster is accepted with it.
func showsWhatAClusterBrings(t *testing.T, h *hub) {
	t.Helper()
	laden(t, h, "brought")
	a := h.approver(t, approval.Choice{})
	var said []string
	a.Say = func(format string, args ...any) {
		if !strings.Contains(format, "brings") {
			return
		}
		if h.cluster(t, "brought").Spec.HubAcceptsClient {
			t.Error("it was accepted before")
		}
		said = append(said, fmt.Sprintf(format, args...))
	}
	if err := within(t, a, "brought"); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"brought: brings label env=prod",
		`brought: brings annotation agent.open-cluster-management.io/x="y"`,
		`brought: brings annotation open-cluster-management.io/image-registries="a\u202eb"`,
		"brought: brings finalizer example.com/hold",
		`brought: brings taint k="v":NoSelect`,
		"brought: brings a lease of 7200 seconds",
		`brought: brings API server "https://api.example"`,
	}
	if diff := cmp.Diff(want, said); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for i, line := range a.Introduced("brought") {
		if want[i] != "brought: brings "+line {
			t.Errorf("%q is not what was printed", line)
		}
	}
	if len(a.Introduced("brought")) != len(want) {
		t.Errorf("got %q", a.Introduced("brought"))
	}
	if got := h.cluster(t, "brought"); got.Labels["env"] != "prod" || len(got.Spec.Taints) != 1 {
		t.Errorf("not as it was: %+v", got)
	}
}

// discardsWhatAClusterBrings: what it registers by stays, and so does what is the hub's.
func discardsWhatAClusterBrings(t *testing.T, h *hub) {
	t.Helper()
	laden(t, h, "discarded")
	if err := within(t, h.approver(t, approval.Choice{Discard: true}), "discarded"); err != nil {
		t.Fatal(err)
	}
	got := h.cluster(t, "discarded")
	if !got.Spec.HubAcceptsClient {
		t.Error("not accepted")
	}
	var warned []string
	again := h.approver(t, approval.Choice{Discard: true})
	again.Warn = func(format string, args ...any) { warned = append(warned, fmt.Sprintf(format, args...)) }
	if err := within(t, again, "discarded"); err != nil || len(warned) != 1 || !strings.Contains(warned[0], "it was accepted before") {
		t.Errorf("of a cluster that is accepted: %v, %q", err, warned)
	}
	left := []string{`annotation agent.open-cluster-management.io/x="y"`, `API server "https://api.example"`}
	if diff := cmp.Diff(left, approval.Brought(got)); diff != "" || !slices.Contains(got.Finalizers, names.FinalizerManifestWork) || got.Annotations[names.AnnotationClusterID] != "id" {
		t.Errorf("finalizers %v, (-want +got):\n%s", got.Finalizers, diff)
	}
}

// awaitsTheRequest is about an agent that has joined, gives up its certificate and has stored
// its next key, but has not yet made the request, as after join --rotate.
func awaitsTheRequest(t *testing.T, h *hub) {
	t.Helper()
	const name = "given-up"
	h.register(t, name)
	if err := within(t, h.approver(t, approval.Choice{}), name); err != nil {
		t.Fatal(err)
	}
	cluster := h.cluster(t, name)
	apimeta.SetStatusCondition(&cluster.Status.Conditions, metav1.Condition{
		Type: clusterv1.ManagedClusterConditionJoined, Status: metav1.ConditionTrue, Reason: "ManagedClusterJoined",
	})
	if err := h.Status().Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	next := h.register(t, name)
	first := true
	a := h.approver(t, approval.Choice{})
	a.Client = interceptor.NewClient(h.WithWatch, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			err := c.List(ctx, list, opts...)
			if requests, ok := list.(*certificatesv1.CertificateSigningRequestList); ok && first {
				first = false // The Approver was faster than the request.
				requests.Items = slices.DeleteFunc(requests.Items, func(r certificatesv1.CertificateSigningRequest) bool { return r.Name == next.Name })
			}
			return err
		},
	})
	a.Own = func(context.Context) (string, error) { return next.Fingerprint, nil }
	if err := within(t, a, name); err != nil {
		t.Fatal(err)
	}
	if got := h.request(t, name, next.Name).State; got != approval.Issued {
		t.Errorf("the request of the next key is %s", got)
	}
}
