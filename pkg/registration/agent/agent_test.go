package agent_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/yaml"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/agent"
)

func testLogger(t *testing.T) logr.Logger {
	t.Helper()
	start := now()
	return funcr.New(func(prefix, args string) {
		if t.Context().Err() == nil {
			t.Logf("%6.2fs %s %.400s", now().Sub(start).Seconds(), prefix, args)
		}
	}, funcr.Options{})
}

// klusterletSays waits until HubConnectionDegraded says what is wanted, and
// returns its message.
func (s *spoke) klusterletSays(t *testing.T, status metav1.ConditionStatus, reason, words string) string {
	t.Helper()
	var got *metav1.Condition
	defer func() {
		if t.Failed() {
			t.Logf("the Klusterlet says %+v", got)
		}
	}()
	eventually(t, "the Klusterlet to say "+reason, func() (bool, error) {
		var k operatorv1.Klusterlet
		if err := s.admin.Get(t.Context(), client.ObjectKey{Name: s.cluster}, &k); err != nil {
			return false, err
		}
		got = apimeta.FindStatusCondition(k.Status.Conditions, names.ConditionHubConnectionDegraded)
		return got != nil && got.Status == status && got.Reason == reason && strings.Contains(got.Message, words), nil
	})
	return got.Message
}

func TestAgent(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	for name, test := range map[string]func(*testing.T, *hub){
		"joins with three writes on the hub":          testJoin,
		"waits for acceptance after its credential":   testAcceptedLater,
		"a crash anywhere makes no second request":    testCrashes,
		"recovers when denied and accepted again":     testDenied,
		"registers again when its Secret is lost":     testLostSecret,
		"says what the bootstrap identity lacks":      testForbidden,
		"waits for a bootstrap kubeconfig":            testNoBootstrap,
		"keeps a made-up name, on OpenShift its id":   testNames,
		"finds out about a silent network":            testSilentNetwork,
		"says that the hub cannot be reached":         testUnreachableHub,
		"brings its client configurations up to date": testClientConfigs,
		"keeps its credential when the hub moves":     testRenamedHub,
		"halts at ten open requests":                  testPileUp,
		"lends its connection to extensions":          testExtension,
		"registers again when the hub lost it":        testForgotten,
		"stays away when the hub detached it":         testDetached,
		"leaves a ManagedCluster that replaces its":   testReplaced,
		"keeps its credential until a hub answers":    testNoAnswer,
		"tries a refused credential again":            testRefusedForATime,
		"registers again when the hub forgot its CA":  testUnknownCredential,
		"renews after the hub refused it for a time":  testRenewsAfterRejection,
		"says when an outage of the hub is over":      testForbiddenAtFirst,
		"registers again when another has its rights": testSuperseded,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, h)
		})
	}
}

func testJoin(t *testing.T, h *hub) {
	t.Helper()
	s := newSpoke(t, h, "joins")
	create(t, s.admin, node("n1", false), node("n2", true))
	create(t, s.admin, &clusterv1alpha1.ClusterClaim{ObjectMeta: metav1.ObjectMeta{Name: "id.k8s.io"}, Spec: clusterv1alpha1.ClusterClaimSpec{Value: "abc"}})
	s.config.Cluster = agent.Cluster{
		ExternalURLs: []string{"https://api.example.com:6443"}, CABundle: managed.CAData,
		Annotations: map[string]string{"agent.open-cluster-management.io/a": "b", "other/x": "y"},
		Labels:      map[string]string{"example.com/env": "prod"},
	}
	p := s.start(t)
	p.reaches(t, agent.Requested)
	s.klusterletSays(t, metav1.ConditionTrue, "BootstrapSecretFunctional,HubKubeConfigSecretMissing", "kubectl ocm accept --clusters joins")
	mc := h.cluster(t, "joins")
	if len(mc.Labels) != 1 || mc.Labels["example.com/env"] != "prod" || len(mc.Spec.Taints) > 0 || mc.Spec.HubAcceptsClient || len(mc.Annotations) != 2 ||
		mc.Annotations["agent.open-cluster-management.io/a"] != "b" || len(mc.Annotations["agent.open-cluster-management.io/cluster-id"]) != 36 || len(mc.Spec.ManagedClusterClientConfigs) != 1 {
		t.Errorf("created %s", mustJSON(t, mc))
	}
	if csrs := h.csrs(t, "joins"); len(csrs) != 1 || s.secret(t, names.PendingCredentialSecret) == nil {
		t.Errorf("%d CSRs, pending Secret %v", len(csrs), s.secret(t, names.PendingCredentialSecret) != nil)
	}
	h.join(t, p, "joins")
	p.reaches(t, agent.Running)
	s.klusterletSays(t, metav1.ConditionFalse, "HubConnectionFunctional", "")
	checkStatus(t, h.cluster(t, "joins"))

	agentUser := names.AgentUser("joins", string(s.secret(t, names.HubKubeconfigSecret).Data[names.KeyAgentName]))
	for user, want := range map[string][]string{
		names.BootstrapTokenUser: {"create managedclusters", "create certificatesigningrequests"},
		agentUser:                {"patch managedclusters/status"},
	} {
		if got := h.writes(t, "joins", user); !slices.Equal(got, want) {
			t.Errorf("%s wrote %q, want %q", user, got, want)
		}
	}
	s.checkFiles(t, h)
	if s.secret(t, names.PendingCredentialSecret) != nil {
		t.Error("the pending Secret is still there")
	}
	if p.metric(t, "ocm_agent_credential_expiry_seconds") <= float64(now().Unix()) ||
		p.metric(t, "ocm_agent_phase", "Running") != 1 || p.metric(t, "ocm_agent_phase", "Requested") != 0 ||
		p.metric(t, "ocm_agent_renewals_total", "success") != 1 {
		t.Error("the metrics do not tell of a running agent")
	}
	var events corev1.EventList
	if err := s.admin.List(t.Context(), &events, client.InNamespace(s.namespace)); err != nil {
		t.Fatal(err)
	}
	for _, reason := range []string{names.EventManagedClusterCreated, names.EventCSRCreated, names.EventCertificateCreated, names.EventSecretSave, names.EventHubClientConfigReady} {
		if !slices.ContainsFunc(events.Items, func(e corev1.Event) bool { return e.Reason == reason }) {
			t.Errorf("no event %s", reason)
		}
	}
}

func node(name string, unschedulable bool) *corev1.Node {
	resources := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("1Gi")}
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{Unschedulable: unschedulable}, Status: corev1.NodeStatus{Capacity: resources, Allocatable: resources}}
}

func checkStatus(t *testing.T, mc *clusterv1.ManagedCluster) {
	t.Helper()
	for _, typ := range []string{clusterv1.ManagedClusterConditionJoined, clusterv1.ManagedClusterConditionAvailable, names.ConditionCertificateRotated} {
		if !apimeta.IsStatusConditionTrue(mc.Status.Conditions, typ) {
			t.Errorf("condition %s is not True", typ)
		}
	}
	if !strings.HasPrefix(mc.Status.Version.Kubernetes, "v1.") {
		t.Errorf("version %q", mc.Status.Version.Kubernetes)
	}
	if cpu := mc.Status.Capacity[clusterv1.ResourceCPU]; cpu.Value() != 4 {
		t.Errorf("capacity %v", mc.Status.Capacity)
	}
	if cpu := mc.Status.Allocatable[clusterv1.ResourceCPU]; cpu.Value() != 2 {
		t.Errorf("allocatable %v", mc.Status.Allocatable)
	}
	if claims := mc.Status.ClusterClaims; len(claims) != 1 || claims[0].Value != "abc" {
		t.Errorf("claims %v", claims)
	}
}

// checkFiles checks that the mirrored kubeconfig works and is private.
func (s *spoke) checkFiles(t *testing.T, h *hub) {
	t.Helper()
	dir, err := os.Stat(s.hubDir)
	if err != nil || dir.Mode().Perm() != 0o700 {
		t.Fatalf("directory: %v, %v", dir, err)
	}
	for _, name := range []string{"kubeconfig", "tls.crt", "tls.key", "cluster-name", "agent-name"} {
		f, err := os.Stat(filepath.Join(s.hubDir, name))
		if err != nil || f.Mode().Perm() != 0o600 {
			t.Errorf("file %s: %v, %v", name, f, err)
		}
	}
	own := h.ClientFor(t, restConfigOf(t, filepath.Join(s.hubDir, "kubeconfig")))
	if err := own.Get(t.Context(), client.ObjectKey{Name: s.cluster}, &clusterv1.ManagedCluster{}); err != nil {
		t.Errorf("the mirrored kubeconfig does not work: %v", err)
	}
}

func testAcceptedLater(t *testing.T, h *hub) {
	t.Helper()
	s := newSpoke(t, h, "later")
	p := s.start(t)
	p.reaches(t, agent.Requested)
	h.approve(t, "later")
	p.reaches(t, agent.Registered)
	s.klusterletSays(t, metav1.ConditionTrue, "BootstrapSecretFunctional,HubKubeConfigUnauthorized", "kubectl ocm accept --clusters later")
	p.stop()
	p = s.start(t) // A restart here asks for nothing.
	p.reaches(t, agent.Registered)
	h.accept(t, "later")
	h.available(t, "later")
	if n := len(h.csrs(t, "later")); n != 1 {
		t.Errorf("%d CSRs", n)
	}
}

// joining is what an agent writes to its own cluster until it has joined: its name,
// the pending key, the credential, and forgetting the key.
func joining() []string {
	return []string{"POST configmaps", "POST secrets", "POST secrets", "DELETE " + names.PendingCredentialSecret}
}

func testCrashes(t *testing.T, h *hub) {
	t.Helper()
	for writes := 1; writes <= len(joining()); writes++ {
		cluster := fmt.Sprintf("crash%d", writes)
		t.Run(cluster, func(t *testing.T) {
			t.Parallel()
			s := newSpoke(t, h, cluster)
			p := s.startUntil(t, writes)
			crashed := false
			for !crashed {
				select {
				case <-p.done:
					crashed = true
				case <-after(50 * time.Millisecond):
					if p.agent.Report().Phase == agent.Requested {
						h.approve(t, cluster)
					}
				}
			}
			p.awaitCrash(t, joining()[:writes]...)
			p = s.start(t)
			eventually(t, "a CSR", func() (bool, error) { return len(h.csrs(t, cluster)) > 0, nil })
			h.approve(t, cluster)
			h.accept(t, cluster)
			h.available(t, cluster)
			if n := len(h.csrs(t, cluster)); n != 1 {
				t.Errorf("%d CSRs", n)
			}
			if s.secret(t, names.PendingCredentialSecret) != nil {
				t.Error("the request is still stored")
			}
			p.stop()
		})
	}
}

func testDenied(t *testing.T, h *hub) {
	t.Helper()
	s := newSpoke(t, h, "denied")
	p := s.start(t)
	h.join(t, p, "denied")
	p.reaches(t, agent.Running)
	h.deny(t, "denied")
	p.reaches(t, agent.Rejected)
	s.klusterletSays(t, metav1.ConditionTrue, "BootstrapSecretFunctional,HubKubeConfigUnauthorized", "denies denied")
	h.accept(t, "denied")
	p.reaches(t, agent.Running)
	s.klusterletSays(t, metav1.ConditionFalse, "HubConnectionFunctional", "")
	p.stop()
	h.clock(t, "denied", metav1.ConditionFalse)
	p = s.start(t)
	s.klusterletSays(t, metav1.ConditionTrue, "BootstrapSecretFunctional,HubKubeConfigError", "out of sync")
	h.clock(t, "denied", metav1.ConditionTrue)
	s.klusterletSays(t, metav1.ConditionFalse, "HubConnectionFunctional", "")
	p.stop()
	h.deny(t, "denied")
	p = s.start(t) // The same after a restart.
	p.reaches(t, agent.Rejected)
	h.accept(t, "denied")
	p.reaches(t, agent.Running)
	if n := len(h.csrs(t, "denied")); n != 1 {
		t.Errorf("%d CSRs", n)
	}
}

func testLostSecret(t *testing.T, h *hub) {
	t.Helper()
	s := newSpoke(t, h, "lost")
	p := s.start(t)
	h.join(t, p, "lost")
	before := s.secret(t, names.HubKubeconfigSecret)
	if err := s.admin.Delete(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	p.reaches(t, agent.Requested)
	eventually(t, "the files to go", func() (bool, error) {
		_, err := os.Stat(filepath.Join(s.hubDir, "tls.key"))
		return os.IsNotExist(err), nil
	})
	h.approve(t, "lost")
	p.reaches(t, agent.Running)
	after := s.secret(t, names.HubKubeconfigSecret)
	// Whoever found the lost credential must not be the agent of the next.
	if after == nil || string(after.Data["agent-name"]) == string(before.Data["agent-name"]) {
		t.Fatal("the agent kept the name of its lost credential")
	}
	if string(after.Data["tls.key"]) == string(before.Data["tls.key"]) {
		t.Error("the lost key is used again")
	}
}

func testForbidden(t *testing.T, h *hub) {
	t.Helper()
	s := newSpoke(t, nil, "forbidden")
	s.setBootstrap(t, h.KubeconfigFor(t, "stranger"))
	p := s.start(t)
	s.klusterletSays(t, metav1.ConditionTrue, "BootstrapSecretUnauthorized,HubKubeConfigSecretMissing", "create managedclusters.cluster.open-cluster-management.io")
	// A new bootstrap kubeconfig is taken up at once.
	s.setBootstrap(t, h.bootstrapKubeconfig(t))
	p.reaches(t, agent.Requested)
}

func testNoBootstrap(t *testing.T, h *hub) {
	t.Helper()
	s := newSpoke(t, nil, "nobootstrap")
	p := s.start(t)
	s.klusterletSays(t, metav1.ConditionTrue, "BootstrapSecretMissing,HubKubeConfigSecretMissing", "kubectl ocm join")
	s.setBootstrap(t, []byte("nonsense: ["))
	s.klusterletSays(t, metav1.ConditionTrue, "BootstrapSecretError,HubKubeConfigSecretMissing", "cannot be parsed")
	s.setBootstrap(t, h.bootstrapKubeconfig(t))
	p.reaches(t, agent.Requested)
}

func testNames(t *testing.T, h *hub) {
	t.Helper()
	s := newSpoke(t, h, "unnamed")
	s.config.Names.Cluster = ""
	p := s.start(t)
	p.reaches(t, agent.Requested)
	p.stop()
	var kept corev1.ConfigMap
	if err := s.admin.Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: names.AgentIdentityConfigMap}, &kept); err != nil {
		t.Fatal(err)
	}
	cluster, name := kept.Data["cluster-name"], kept.Data["agent-name"]
	if len(cluster) != 36 || len(name) != 5 {
		t.Errorf("made up %q and %q", cluster, name)
	}
	p = s.start(t)
	h.join(t, p, cluster)
	p.stop()
	secret := s.secret(t, names.HubKubeconfigSecret)
	if string(secret.Data["cluster-name"]) != cluster || string(secret.Data["agent-name"]) != name {
		t.Errorf("registered as %s, %s; was %s, %s", secret.Data["cluster-name"], secret.Data["agent-name"], cluster, name)
	}
	if n := len(h.csrs(t, cluster)); n != 1 {
		t.Errorf("%d CSRs", n)
	}
	// Whoever found the lost credential must not be the agent of the next.
	if err := s.admin.Delete(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	p = s.start(t)
	p.reaches(t, agent.Requested)
	h.approve(t, cluster)
	p.reaches(t, agent.Running)
	p.stop()
	secret = s.secret(t, names.HubKubeconfigSecret)
	if again := string(secret.Data["agent-name"]); again == name || len(again) != 5 || string(secret.Data["cluster-name"]) != cluster {
		t.Errorf("registered again as %s, %s; was %s, %s", secret.Data["cluster-name"], again, cluster, name)
	}
	// The cluster keeps its name although nothing of the agent is left.
	for _, object := range []client.Object{secret, &kept} {
		if err := s.admin.Delete(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	s.start(t).reaches(t, agent.Requested)
	if n := len(h.csrs(t, cluster)); n != 3 {
		t.Errorf("%d CSRs under the name after a new installation", n)
	}

	const id = "b1f5c1a0-5b5e-4b5e-9a4e-2d5a3f0c7d11"
	installOpenShift(t, s.admin, id)
	s = newSpoke(t, h, "openshift")
	s.config.Names.Cluster = ""
	s.start(t).reaches(t, agent.Requested)
	if n := len(h.csrs(t, id)); n != 1 {
		t.Errorf("%d CSRs for the OpenShift id", n)
	}
}

// installOpenShift makes the managed cluster look like an OpenShift cluster.
func installOpenShift(t *testing.T, c client.Client, id string) {
	t.Helper()
	definition := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: clusterversions.config.openshift.io}
spec:
  group: config.openshift.io
  scope: Cluster
  names: {kind: ClusterVersion, listKind: ClusterVersionList, plural: clusterversions, singular: clusterversion}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`), &definition.Object); err != nil {
		t.Fatal(err)
	}
	install(t, c, []*unstructured.Unstructured{definition}, nil, crd)
	version := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "config.openshift.io/v1", "kind": "ClusterVersion",
		"metadata": map[string]any{"name": "version"}, "spec": map[string]any{"clusterID": id},
	}}
	// The API server serves a new resource in its own time.
	eventually(t, "the ClusterVersion", func() (bool, error) { return true, c.Create(t.Context(), version) })
	t.Cleanup(func() { // The test may run once more.
		if err := c.Delete(context.WithoutCancel(t.Context()), version); err != nil {
			t.Errorf("delete the ClusterVersion: %v", err)
		}
	})
}

func testPileUp(t *testing.T, h *hub) {
	t.Helper()
	other := newSpoke(t, h, "pileup")
	p := other.start(t)
	p.reaches(t, agent.Requested)
	first := h.csrs(t, "pileup")[0]
	p.stop()
	if err := other.admin.Delete(t.Context(), other.secret(t, names.PendingCredentialSecret)); err != nil {
		t.Fatal(err)
	}
	// Only those of the agent's own credential count.
	requester := h.ClientFor(t, h.ConfigFor(t, names.BootstrapTokenUser, names.BootstrapTokenGroup))
	for i := range 9 {
		c := first.DeepCopy()
		c.ObjectMeta = metav1.ObjectMeta{Name: fmt.Sprint("pileup-", i), Labels: first.Labels}
		create(t, requester, c)
	}
	p = other.start(t)
	s := other
	s.klusterletSays(t, metav1.ConditionTrue, "BootstrapSecretFunctional,HubKubeConfigSecretMissing", "kubectl get csr")
	if n := len(h.csrs(t, "pileup")); n != 10 {
		t.Errorf("%d CSRs", n)
	}
	p.stop()
}

// testForgotten restores a hub from before the cluster joined.
func testForgotten(t *testing.T, h *hub) {
	t.Helper()
	s := newSpoke(t, h, "forgotten")
	p := s.start(t)
	h.join(t, p, "forgotten")
	h.forget(t, "forgotten") // While the agent is connected, ...
	p.reaches(t, agent.Requested)
	s.klusterletSays(t, metav1.ConditionTrue, "BootstrapSecretFunctional,HubKubeConfigError", "accept --clusters forgotten")
	if mc := h.cluster(t, "forgotten"); mc.Spec.HubAcceptsClient {
		t.Error("the cluster came back accepted")
	}
	h.join(t, p, "forgotten")
	p.reaches(t, agent.Running)
	p.stop()
	h.forget(t, "forgotten") // ... and while it is not.
	p = s.start(t)
	p.reaches(t, agent.Requested)
	h.join(t, p, "forgotten")
	p.reaches(t, agent.Running)
}

// forget takes from the hub all that it had of a cluster.
func (h *hub) forget(t *testing.T, cluster string) {
	t.Helper()
	for _, object := range []client.Object{
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: names.ManagedClusterClusterRole(cluster)}},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: names.ManagedClusterClusterRole(cluster)}},
		registrationBinding(cluster),
		h.cluster(t, cluster),
	} {
		if err := h.admin.Delete(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
}

// testDetached: a cluster that the hub's administrator removed does not come
// back by itself, but when it is joined again.
func testDetached(t *testing.T, h *hub) {
	t.Helper()
	s := newSpoke(t, h, "detached")
	p := s.start(t)
	h.join(t, p, "detached")
	mc := h.cluster(t, "detached")
	mc.Finalizers = []string{"example.com/cleanup"}
	if err := h.admin.Update(t.Context(), mc); err != nil {
		t.Fatal(err)
	}
	if err := h.admin.Delete(t.Context(), mc); err != nil {
		t.Fatal(err)
	}
	// It is gone before the agent can look.
	if err := h.admin.Get(t.Context(), client.ObjectKeyFromObject(mc), mc); err != nil {
		t.Fatal(err)
	}
	mc.Finalizers = nil
	if err := h.admin.Update(t.Context(), mc); err != nil {
		t.Fatal(err)
	}
	p.reaches(t, agent.Rejected)
	s.klusterletSays(t, metav1.ConditionTrue, "BootstrapSecretFunctional,HubKubeConfigUnauthorized", "run kubectl ocm join --refresh on this cluster with a new token")
	p.stop()
	p = s.start(t)
	p.reaches(t, agent.Rejected)
	if err := h.admin.Get(t.Context(), client.ObjectKeyFromObject(mc), mc); !apierrors.IsNotFound(err) {
		t.Errorf("the ManagedCluster: %v", err)
	}
	s.setBootstrap(t, h.bootstrapKubeconfig(t)) // Of the same user with another certificate.
	p.reaches(t, agent.Requested)
	h.join(t, p, "detached")
	p.reaches(t, agent.Running)
}

// valve delays writes to a Secret until it is opened.
type valve struct {
	secret        string
	arrived, open chan struct{}
	once          *sync.Once
	next          http.RoundTripper
}

func (v valve) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPut && path.Base(r.URL.Path) == v.secret {
		v.once.Do(func() { close(v.arrived) })
		<-v.open
	}
	return v.next.RoundTrip(r)
}

// testReplaced deletes the ManagedCluster of an agent and creates one of the same name, as
// from a backup, before the agent has looked again. It has no permissions then, and must
// not wait silently until its certificate ends.
func testReplaced(t *testing.T, h *hub) {
	t.Helper()
	const name = "replaced"
	s := newSpoke(t, h, name)
	p := s.start(t)
	h.join(t, p, name)
	p.reaches(t, agent.Running)
	p.stop()
	delayed := valve{secret: names.HubKubeconfigSecret, arrived: make(chan struct{}), open: make(chan struct{}), once: &sync.Once{}}
	s.wrap = func(next http.RoundTripper) http.RoundTripper { delayed.next = next; return delayed }
	p = s.start(t)
	p.reaches(t, agent.Running)

	mc := h.cluster(t, name)
	mc.Finalizers = []string{"example.com/cleanup"}
	if err := h.admin.Update(t.Context(), mc); err != nil {
		t.Fatal(err)
	}
	if err := h.admin.Delete(t.Context(), mc); err != nil {
		t.Fatal(err)
	}
	select {
	case <-delayed.arrived: // The agent is about to store that it was detached.
	case <-after(patience):
		t.Fatal("the agent does not note the deletion")
	}
	h.supersede(t, name)
	if err := h.admin.Get(t.Context(), client.ObjectKeyFromObject(mc), mc); err != nil {
		t.Fatal(err)
	}
	mc.Finalizers = nil
	if err := h.admin.Update(t.Context(), mc); err != nil {
		t.Fatal(err)
	}
	create(t, h.admin, &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true}})
	h.decide(t, name, true, metav1.Condition{Status: metav1.ConditionTrue, Reason: names.ReasonHubAccepted, Message: names.MessageHubAccepted})
	close(delayed.open)
	p.reaches(t, agent.Rejected)
	s.klusterletSays(t, metav1.ConditionTrue, "BootstrapSecretFunctional,HubKubeConfigUnauthorized", "run kubectl ocm join --refresh on this cluster with a new token")
}

// testNoAnswer gives the agent a new address at which nobody answers for a
// while: there is no reason to ask for another credential.
func testNoAnswer(t *testing.T, h *hub) {
	t.Helper()
	s := newSpoke(t, h, "noanswer")
	p := s.start(t)
	h.join(t, p, "noanswer")
	before := s.secret(t, names.HubKubeconfigSecret)
	w := newWire(t, h.URL)
	w.down.Store(true)
	address := "https://" + w.listener.Addr().String()
	s.setBootstrap(t, bytes.ReplaceAll(h.bootstrapKubeconfig(t), []byte(h.URL), []byte(address)))
	s.klusterletSays(t, metav1.ConditionTrue, "BootstrapSecretError,HubKubeConfigError", "credential is retained")
	w.down.Store(false)
	p.reaches(t, agent.Running)
	after := s.secret(t, names.HubKubeconfigSecret)
	if !bytes.Equal(before.Data["tls.key"], after.Data["tls.key"]) || len(h.csrs(t, "noanswer")) != 1 {
		t.Errorf("the credential was not kept; %d CSRs", len(h.csrs(t, "noanswer")))
	}
	if !bytes.Contains(after.Data["kubeconfig"], []byte(address)) {
		t.Error("the hub kubeconfig does not lead to the new address")
	}
}

// testRefusedForATime lets the hub refuse the agent's certificate for a time, as
// while it changes the certificate authority that it verifies clients with.
func testRefusedForATime(t *testing.T, h *hub) {
	t.Helper()
	front := newFront(t, h)
	s := newSpoke(t, nil, "rollout")
	s.setBootstrap(t, bytes.ReplaceAll(h.bootstrapKubeconfig(t), []byte(h.URL), []byte(front.url)))
	p := s.start(t)
	h.join(t, p, "rollout")
	p.stop()
	before := s.secret(t, names.HubKubeconfigSecret)
	front.refuses.Store(true)
	p = s.start(t)
	p.reaches(t, agent.Requested)
	front.refuses.Store(false)
	p.reaches(t, agent.Running) // Nobody approved the request.
	if after := s.secret(t, names.HubKubeconfigSecret); !bytes.Equal(before.Data["tls.key"], after.Data["tls.key"]) {
		t.Error("the credential was replaced")
	}
}

func testClientConfigs(t *testing.T, h *hub) {
	t.Helper()
	s := newSpoke(t, h, "urls")
	s.config.Cluster.ExternalURLs = []string{"https://one.example.com"}
	p := s.start(t)
	h.join(t, p, "urls")
	p.stop()
	s.config.Cluster.ExternalURLs = []string{"https://one.example.com", "https://two.example.com"}
	s.config.Cluster.CABundle = managed.CAData
	s.start(t).reaches(t, agent.Running)
	eventually(t, "the client configurations", func() (bool, error) {
		configs := h.cluster(t, "urls").Spec.ManagedClusterClientConfigs
		return len(configs) == 2 && configs[1].URL == "https://two.example.com" && string(configs[0].CABundle) == string(managed.CAData), nil
	})
	if !h.cluster(t, "urls").Spec.HubAcceptsClient {
		t.Error("the update undid the acceptance")
	}
}

// testUnknownCredential gives the agent a certificate that is right in every
// way and signed by nobody that the hub knows, as after a rotation of its CA.
func testUnknownCredential(t *testing.T, h *hub) {
	t.Helper()
	s := newSpoke(t, h, "unknownca")
	p := s.start(t)
	h.join(t, p, "unknownca")
	p.stop()
	secret := s.secret(t, names.HubKubeconfigSecret)
	forged := managed.ConfigFor(t, names.AgentUser("unknownca", string(secret.Data["agent-name"])), names.ClusterGroup("unknownca"), names.GroupManagedClusters)
	secret.Data["tls.crt"], secret.Data["tls.key"] = forged.CertData, forged.KeyData
	if err := s.admin.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	p = s.start(t)
	p.reaches(t, agent.Requested)
	h.approve(t, "unknownca")
	p.reaches(t, agent.Running)
}

// testExtension shows what an extension may count on: it begins when the hub has
// accepted the cluster, ends with the connection, and begins again with the next.
func testExtension(t *testing.T, h *hub) {
	t.Helper()
	s := newSpoke(t, h, "extended")
	began, ended := make(chan client.Client, 3), make(chan struct{}, 3)
	s.config.Extensions = []agent.Extension{func(inner ctrl.Manager, cluster string) error {
		if cluster != "extended" {
			t.Errorf("extension of %q", cluster)
		}
		return inner.Add(manager.RunnableFunc(func(ctx context.Context) error {
			began <- inner.GetClient()
			<-ctx.Done()
			ended <- struct{}{}
			return nil
		}))
	}}
	p := s.start(t)
	p.reaches(t, agent.Requested)
	if len(began) != 0 {
		t.Error("an extension began before the hub accepted the cluster")
	}
	h.join(t, p, "extended")
	if err := (<-began).Get(t.Context(), client.ObjectKey{Name: "extended"}, &clusterv1.ManagedCluster{}); err != nil {
		t.Errorf("with the hub connection: %v", err)
	}
	if err := s.admin.Delete(t.Context(), s.secret(t, names.HubKubeconfigSecret)); err != nil {
		t.Fatal(err)
	}
	<-ended
	p.reaches(t, agent.Requested)
	h.approve(t, "extended")
	<-began
	p.stop()
	<-ended
}
