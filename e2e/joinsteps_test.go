package e2e_test

import (
	"context"
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/scheme"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// TestJoinStepByStep walks through the registration of a cluster that asks to join:
// a subtest for each step, in their order.
func TestJoinStepByStep(t *testing.T) {
	fleet.needs(t, "cluster3")
	j := &stepJoin{name: "step-by-step", hub: fleet.client(t, "hub"), managed: fleet.client(t, "cluster3")}
	fleet.leave(t, "cluster3", j.name)
	token := strings.TrimSpace(fleet.must(t, "get", "token", "--context", "hub", "-o", "jsonpath={.hub-token}"))
	hub := fleet.config(t, "hub")
	fleet.must(t, "join", "--context", "cluster3", "--cluster-name", j.name, "--hub-token", token,
		"--hub-apiserver", hub.Host, "--ca-file", writeFile(t, hub.CAData))

	for _, step := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"1 the bootstrap kubeconfig may create a ManagedCluster and CSRs and nothing else", j.step1},
		{"2 the agent creates the ManagedCluster, once, whatever happens to the agent", j.step2},
		{"3 the agent asks for a certificate with its identity, once for each key", j.step3},
		{"4 an approved CSR alone opens nothing", j.step4},
		{"6 only who may update managedclusters/accept sets hubAcceptsClient", j.step6},
		{"5 the hub binds the agent's identity to its own ManagedCluster", j.step5},
		{"7 the condition says that the hub accepted the cluster", j.step7},
		{"8 the cluster has a namespace", j.step8},
		{"9 the agent has its rights in the namespace", j.step9},
		{"10 the agent keeps the kubeconfig with its certificate in a Secret", j.step10},
		{"10b the agent talks to the hub as itself", j.step10b},
		{"11 the agent says that it joined", j.step11},
		{"12 the agent reports the other fields of the status", j.step12},
	} {
		if !t.Run(step.name, step.run) {
			t.FailNow() // Later steps build on this one.
		}
	}
}

type stepJoin struct {
	name         string
	hub, managed client.Client
	csr          *certificatesv1.CertificateSigningRequest
}

func (j *stepJoin) step1(t *testing.T) {
	config := secretConfig(t, j.managed, names.BootstrapHubKubeconfigSecret)
	bootstrap := newClient(t, config)
	for _, may := range []access{
		{verb: "create", group: names.GroupCluster, resource: "managedclusters"},
		{verb: "get", group: names.GroupCluster, resource: "managedclusters", name: j.name},
		{verb: "create", group: names.GroupCertificates, resource: "certificatesigningrequests"},
		{verb: "watch", group: names.GroupCertificates, resource: "certificatesigningrequests"},
	} {
		wantAllowed(t, bootstrap, may)
	}
	for _, mayNot := range []access{
		{verb: "update", group: names.GroupCluster, resource: "managedclusters", name: j.name},
		{verb: "delete", group: names.GroupCluster, resource: "managedclusters", name: j.name},
		{verb: "update", group: names.RegisterGroup, resource: "managedclusters", subresource: "accept", name: j.name},
		{verb: "update", group: names.GroupCertificates, resource: "certificatesigningrequests", subresource: "approval"},
		{verb: "list", resource: "secrets"},
		{verb: "get", resource: "secrets", namespace: names.OperatorNamespace},
		{verb: "create", resource: "serviceaccounts", subresource: "token", namespace: names.OperatorNamespace},
		{verb: "list", resource: "namespaces"},
		{verb: "*", group: "*", resource: "*"},
	} {
		wantDenied(t, bootstrap, mayNot)
	}
}

func (j *stepJoin) step2(t *testing.T) {
	cluster := j.awaitCluster(t)
	if cluster.Spec.HubAcceptsClient || len(cluster.Labels) != 0 || len(cluster.Spec.Taints) != 0 {
		t.Errorf("an agent asked for more than to be known: %+v %+v", cluster.Labels, cluster.Spec)
	}
	j.restartAgent(t)
	again := j.awaitCluster(t)
	if again.UID != cluster.UID {
		t.Errorf("the restarted agent made another ManagedCluster")
	}
}

func (j *stepJoin) step3(t *testing.T) {
	eventually(t, "one CSR", func(ctx context.Context) error {
		csrs, err := j.csrs(ctx)
		if err == nil && len(csrs) != 1 {
			err = fmt.Errorf("%d CSRs of the cluster", len(csrs))
		}
		if err == nil {
			j.csr = &csrs[0]
		}
		return err
	})
	spec := j.csr.Spec
	if spec.SignerName != certificatesv1.KubeAPIServerClientSignerName {
		t.Errorf("signer %s", spec.SignerName)
	}
	wantUsages := []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageClientAuth}
	if diff := cmp.Diff(wantUsages, spec.Usages, cmpopts.SortSlices(func(a, b certificatesv1.KeyUsage) bool { return a < b })); diff != "" {
		t.Errorf("usages (-want +got):\n%s", diff)
	}
	block, _ := pem.Decode(spec.Request)
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(request.Subject.Organization)
	want := []string{names.ClusterGroup(j.name), names.GroupManagedClusters}
	slices.Sort(want)
	if diff := cmp.Diff(want, request.Subject.Organization); diff != "" {
		t.Errorf("organizations (-want +got):\n%s", diff)
	}
	if cluster, agent, ok := names.ParseAgentUser(request.Subject.CommonName); !ok || cluster != j.name || agent == "" {
		t.Errorf("common name %q", request.Subject.CommonName)
	}
	// The name is a digest of subject and key, so the same key is the same CSR.
	j.restartAgent(t)
	eventually(t, "the restarted agent waits for the same CSR", func(ctx context.Context) error {
		csrs, err := j.csrs(ctx)
		if err != nil {
			return err
		}
		if len(csrs) != 1 || csrs[0].UID != j.csr.UID {
			t.Fatalf("%d CSRs after a restart", len(csrs))
		}
		return j.agentReady(ctx)
	})
	if !strings.HasPrefix(j.csr.Name, j.name+"-") {
		t.Errorf("name %s", j.csr.Name)
	}
}

// user is the user that the agent asked to be.
func (j *stepJoin) user(t *testing.T) string {
	t.Helper()
	block, _ := pem.Decode(j.csr.Spec.Request)
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return request.Subject.CommonName
}

func (j *stepJoin) step4(t *testing.T) {
	kubectl(t, "hub", "certificate", "approve", j.csr.Name)
	var certificate []byte
	eventually(t, "the certificate is issued", func(ctx context.Context) error {
		var csr certificatesv1.CertificateSigningRequest
		if err := j.hub.Get(ctx, client.ObjectKeyFromObject(j.csr), &csr); err != nil {
			return err
		}
		if certificate = csr.Status.Certificate; len(certificate) == 0 {
			return errors.New("there is none")
		}
		return nil
	})
	var config *rest.Config
	eventually(t, "the agent stores its certificate", func(context.Context) error {
		var secret corev1.Secret
		key := client.ObjectKey{Namespace: names.AgentNamespace, Name: names.HubKubeconfigSecret}
		return j.managed.Get(t.Context(), key, &secret)
	})
	config = fleet.agentConfig(t, "cluster3")
	agent := newClient(t, config)
	for _, mayNot := range []access{
		{verb: "get", group: names.GroupCluster, resource: "managedclusters", name: j.name},
		{verb: "patch", group: names.GroupCluster, resource: "managedclusters", subresource: "status", name: j.name},
		{verb: "create", group: names.GroupCertificates, resource: "certificatesigningrequests"},
		{verb: "renew", group: names.RegisterGroup, resource: "managedclusters", subresource: "clientcertificates", name: j.name},
		{verb: "get", group: "coordination.k8s.io", resource: "leases", namespace: j.name},
	} {
		wantDenied(t, agent, mayNot)
	}
	err := j.hub.Get(t.Context(), client.ObjectKey{Name: j.name}, &corev1.Namespace{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("namespace of a cluster that nobody accepted: %v", err)
	}
}

func (j *stepJoin) step6(t *testing.T) {
	grant(t, j.hub, "e2e-cluster-editor", rbacv1.PolicyRule{
		APIGroups: []string{names.GroupCluster}, Resources: []string{"managedclusters"}, Verbs: []string{"get", "patch", "update"},
	})
	accept := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"hubAcceptsClient":true}}`))
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: j.name}}
	err := impersonate(t, "e2e-cluster-editor").Patch(t.Context(), cluster, accept)
	if !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
		t.Fatalf("an editor without the right to accept: %v", err)
	}
	fleet.must(t, "accept", "--context", "hub", "--clusters", j.name, "--wait")
	if !j.awaitCluster(t).Spec.HubAcceptsClient {
		t.Error("hubAcceptsClient is not true")
	}
}

func (j *stepJoin) step5(t *testing.T) {
	eventually(t, "ClusterRole and binding", func(ctx context.Context) error {
		key := client.ObjectKey{Name: names.ManagedClusterClusterRole(j.name)}
		var binding rbacv1.ClusterRoleBinding
		if err := j.hub.Get(ctx, key, &binding); err != nil {
			return err
		}
		if len(binding.Subjects) != 1 || binding.Subjects[0].Kind != rbacv1.UserKind || binding.Subjects[0].Name != j.user(t) {
			return fmt.Errorf("subjects %+v", binding.Subjects)
		}
		return nil
	})
	agent := newClient(t, fleet.agentConfig(t, "cluster3"))
	wantAllowed(t, agent, access{verb: "patch", group: names.GroupCluster, resource: "managedclusters", subresource: "status", name: j.name})
}

func (j *stepJoin) step7(t *testing.T) {
	c := j.awaitCondition(t, clusterv1.ManagedClusterConditionHubAccepted)
	if c.Reason != names.ReasonHubAccepted || c.Message != names.MessageHubAccepted {
		t.Errorf("%+v", c)
	}
}

func (j *stepJoin) step8(t *testing.T) {
	var ns corev1.Namespace
	if err := j.hub.Get(t.Context(), client.ObjectKey{Name: j.name}, &ns); err != nil {
		t.Fatal(err)
	}
	if ns.Labels[names.LabelClusterName] != j.name {
		t.Errorf("labels %v", ns.Labels)
	}
}

func (j *stepJoin) step9(t *testing.T) {
	for _, name := range []string{names.RegistrationRoleBinding(j.name), names.WorkRoleBinding(j.name)} {
		if err := j.hub.Get(t.Context(), client.ObjectKey{Namespace: j.name, Name: name}, &rbacv1.RoleBinding{}); err != nil {
			t.Error(err)
		}
	}
	agent := newClient(t, fleet.agentConfig(t, "cluster3"))
	wantAllowed(t, agent, access{verb: "update", group: "coordination.k8s.io", resource: "leases", namespace: j.name})
	wantDenied(t, agent, access{verb: "update", group: "coordination.k8s.io", resource: "leases", namespace: "cluster1"})
}

func (j *stepJoin) step10(t *testing.T) {
	var secret corev1.Secret
	key := client.ObjectKey{Namespace: names.AgentNamespace, Name: names.HubKubeconfigSecret}
	if err := j.managed.Get(t.Context(), key, &secret); err != nil {
		t.Fatal(err)
	}
	for _, k := range []string{names.KeyKubeconfig, names.KeyTLSCert, names.KeyTLSKey, names.KeyAgentName} {
		if len(secret.Data[k]) == 0 {
			t.Errorf("no %s", k)
		}
	}
	if got := string(secret.Data[names.KeyClusterName]); got != j.name {
		t.Errorf("%s is %q", names.KeyClusterName, got)
	}
}

func (j *stepJoin) step10b(t *testing.T) {
	review := &authenticationv1.SelfSubjectReview{}
	if err := newClient(t, fleet.agentConfig(t, "cluster3")).Create(t.Context(), review); err != nil {
		t.Fatal(err)
	}
	if cluster, _, ok := names.ParseAgentUser(review.Status.UserInfo.Username); !ok || cluster != j.name {
		t.Errorf("user %s", review.Status.UserInfo.Username)
	}
}

func (j *stepJoin) step11(t *testing.T) {
	if c := j.awaitCondition(t, clusterv1.ManagedClusterConditionJoined); c.Reason != names.ReasonJoined {
		t.Errorf("%+v", c)
	}
}

func (j *stepJoin) step12(t *testing.T) {
	j.awaitCondition(t, clusterv1.ManagedClusterConditionAvailable)
	status := j.awaitCluster(t).Status
	if !strings.HasPrefix(status.Version.Kubernetes, "v1.") {
		t.Errorf("version %q", status.Version.Kubernetes)
	}
	cpu := status.Capacity[clusterv1.ResourceCPU]
	if cpu.IsZero() {
		t.Errorf("capacity %v", status.Capacity)
	}
}

// TestRenewalStepByStep walks through the renewal of a client certificate that lives for
// minutes, while the lease is watched.
func TestRenewalStepByStep(t *testing.T) {
	t.Parallel()
	hub, managed := fleet.client(t, "hub"), fleet.client(t, "cluster1")
	pods := agentPods(t, managed)
	// With a lease of five seconds, many renewals meet the change of certificates.
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"leaseDurationSeconds":5}}`))
	if err := hub.Patch(t.Context(), &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "cluster1"}}, patch); err != nil {
		t.Fatal(err)
	}
	before := leaf(t, managed, names.HubKubeconfigSecret)
	began := metav1.Now()
	watch := watchLease(t, "cluster1")
	eventually(t, "the agent takes up the shorter lease", func(context.Context) error { return watch.pace(25 * time.Second) })
	watch.compare(t, hub, 5*time.Second)

	var after *x509.Certificate
	t.Run("1 and 4 the agent notices in time and keeps the new certificate in the Secret", func(t *testing.T) {
		eventually(t, "a new certificate", func(context.Context) error {
			after = leaf(t, managed, names.HubKubeconfigSecret)
			if after.SerialNumber.Cmp(before.SerialNumber) == 0 {
				return errors.New("it is the old one")
			}
			return nil
		})
		// The dates in a certificate do not tell: the signer dates it back.
		issued, asked := approvedAt(t, csrOf(t, hub, before)), csrOf(t, hub, after).CreationTimestamp.Time
		if margin := before.NotAfter.Sub(issued) / 10; asked.After(before.NotAfter.Add(-margin)) {
			t.Errorf("the new certificate was requested at %v, the old one is good from %v until %v", asked, issued, before.NotAfter)
		}
	})
	t.Run("2 it is for a new key and the same subject, requested by the agent itself", func(t *testing.T) {
		key, ok := before.PublicKey.(interface{ Equal(crypto.PublicKey) bool })
		if !ok || key.Equal(after.PublicKey) {
			t.Errorf("the key, a %T, is the old one", before.PublicKey)
		}
		if before.Subject.String() != after.Subject.String() {
			t.Errorf("subject %s became %s", before.Subject, after.Subject)
		}
		csr := csrOf(t, hub, after)
		if csr.Spec.Username != after.Subject.CommonName {
			t.Errorf("requested by %s", csr.Spec.Username)
		}
	})
	t.Run("3 the hub approved it by itself", func(t *testing.T) {
		for _, c := range csrOf(t, hub, after).Status.Conditions {
			if c.Type == certificatesv1.CertificateApproved && c.Reason == names.ReasonAutoApproved {
				return
			}
		}
		t.Error("there is no approval by the hub")
	})
	t.Run("without a restart and without a gap in the lease", func(t *testing.T) {
		// The old certificate ends; the agent must go on with the new one.
		eventually(t, "a lease that was renewed after the old certificate ended", func(context.Context) error {
			if last := watch.last(); !last.After(before.NotAfter.Add(5 * time.Second)) {
				return fmt.Errorf("last renewed at %v, the certificate ended at %v", last, before.NotAfter)
			}
			return nil
		})
		if refused := refusedRenewals(t, "cluster1", began); len(refused) > 0 {
			t.Errorf("the hub refused renewals of the lease:\n%s", strings.Join(refused, "\n"))
		}
		// After five periods without a renewal, a hub takes a cluster for lost.
		if missed := watch.missed(); missed > 5 {
			t.Errorf("the agent did not renew its lease while the test renewed its own %d times", missed)
		}
		if diff := cmp.Diff(pods, agentPods(t, managed)); diff != "" {
			t.Errorf("the agent restarted (-before +after):\n%s", diff)
		}
	})
}

// awaitCluster returns the ManagedCluster once it exists.
func (j *stepJoin) awaitCluster(t *testing.T) *clusterv1.ManagedCluster {
	t.Helper()
	var cluster clusterv1.ManagedCluster
	eventually(t, "ManagedCluster "+j.name, func(ctx context.Context) error {
		return j.hub.Get(ctx, client.ObjectKey{Name: j.name}, &cluster)
	})
	return &cluster
}

func (j *stepJoin) awaitCondition(t *testing.T, kind string) *metav1.Condition {
	t.Helper()
	return awaitCondition(t, j.hub, j.name, kind)
}

func (j *stepJoin) csrs(ctx context.Context) ([]certificatesv1.CertificateSigningRequest, error) {
	var list certificatesv1.CertificateSigningRequestList
	err := j.hub.List(ctx, &list, client.MatchingLabels{names.LabelClusterName: j.name})
	// An earlier life of the cluster may have left its own behind.
	list.Items = slices.DeleteFunc(list.Items, func(csr certificatesv1.CertificateSigningRequest) bool {
		return len(csr.Status.Conditions) > 0
	})
	return list.Items, err
}

// restartAgent deletes the agent's Pod and waits for another one.
func (j *stepJoin) restartAgent(t *testing.T) {
	t.Helper()
	before := agentPods(t, j.managed)
	err := j.managed.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace(names.AgentNamespace),
		client.MatchingLabels{"app": names.AppRegistrationAgent})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "another agent", func(ctx context.Context) error {
		if len(before) > 0 && cmp.Equal(before, agentPods(t, j.managed)) {
			return errors.New("the old Pod is still there")
		}
		return j.agentReady(ctx)
	})
}

func (j *stepJoin) agentReady(ctx context.Context) error {
	var list corev1.PodList
	if err := j.managed.List(ctx, &list, client.InNamespace(names.AgentNamespace), client.MatchingLabels{"app": names.AppRegistrationAgent}); err != nil {
		return err
	}
	for _, pod := range list.Items {
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue && pod.DeletionTimestamp == nil {
				return nil
			}
		}
	}
	return errors.New("no Pod of the agent is ready")
}

// agentPods are the UIDs of the agent's Pods with their restarts.
func agentPods(t *testing.T, managed client.Client) map[string]int32 {
	t.Helper()
	var list corev1.PodList
	err := managed.List(t.Context(), &list, client.InNamespace(names.AgentNamespace), client.MatchingLabels{"app": names.AppRegistrationAgent})
	if err != nil {
		t.Fatal(err)
	}
	pods := map[string]int32{}
	for _, pod := range list.Items {
		pods[string(pod.UID)] = 0
		for _, c := range pod.Status.ContainerStatuses {
			pods[string(pod.UID)] += c.RestartCount
		}
	}
	return pods
}

// refusedRenewals returns what the registration agent of a cluster has logged since then
// of renewals of its lease that the hub refused.
func refusedRenewals(t *testing.T, cluster string, since metav1.Time) []string {
	t.Helper()
	managed, err := kubernetes.NewForConfig(fleet.config(t, cluster))
	if err != nil {
		t.Fatal(err)
	}
	pods := managed.CoreV1().Pods(names.AgentNamespace)
	list, err := pods.List(t.Context(), metav1.ListOptions{LabelSelector: "app=" + names.AppRegistrationAgent})
	if err != nil {
		t.Fatal(err)
	}
	var refused []string
	for i := range list.Items {
		log, err := pods.GetLogs(list.Items[i].Name, &corev1.PodLogOptions{SinceTime: &since}).DoRaw(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(log) == 0 {
			t.Errorf("Pod %s has logged nothing, not even that it renewed its certificate", list.Items[i].Name)
		}
		for line := range strings.Lines(string(log)) {
			if strings.Contains(line, "registration.lease") && strings.Contains(line, "Unauthorized") {
				refused = append(refused, strings.TrimSpace(line))
			}
		}
	}
	return refused
}

func awaitCondition(t *testing.T, hub client.Client, cluster, kind string) *metav1.Condition {
	t.Helper()
	var found *metav1.Condition
	eventually(t, "condition "+kind+" of "+cluster, func(ctx context.Context) error {
		var mc clusterv1.ManagedCluster
		if err := hub.Get(ctx, client.ObjectKey{Name: cluster}, &mc); err != nil {
			return err
		}
		if found = apimeta.FindStatusCondition(mc.Status.Conditions, kind); found == nil || found.Status != metav1.ConditionTrue {
			return fmt.Errorf("conditions are %+v", mc.Status.Conditions)
		}
		return nil
	})
	return found
}

// leaf is the certificate in a kubeconfig Secret of the agent namespace.
func leaf(t *testing.T, managed client.Client, name string) *x509.Certificate {
	t.Helper()
	var secret corev1.Secret
	if err := managed.Get(t.Context(), client.ObjectKey{Namespace: names.AgentNamespace, Name: name}, &secret); err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(secret.Data[names.KeyTLSCert])
	if block == nil {
		t.Fatalf("no certificate in %s", name)
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

// csrOf finds the CSR of cluster1 that a certificate came from.
func csrOf(t *testing.T, hub client.Client, cert *x509.Certificate) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	var list certificatesv1.CertificateSigningRequestList
	if err := hub.List(t.Context(), &list, client.MatchingLabels{names.LabelClusterName: "cluster1"}); err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		if block, _ := pem.Decode(list.Items[i].Status.Certificate); block != nil && slices.Equal(block.Bytes, cert.Raw) {
			return &list.Items[i]
		}
	}
	t.Fatal("no CSR brought this certificate")
	return nil
}

// approvedAt is when a CSR was approved.
func approvedAt(t *testing.T, csr *certificatesv1.CertificateSigningRequest) time.Time {
	t.Helper()
	for _, c := range csr.Status.Conditions {
		if c.Type == certificatesv1.CertificateApproved {
			return c.LastUpdateTime.Time
		}
	}
	t.Fatalf("%s is not approved", csr.Name)
	return time.Time{}
}

// secretConfig is the connection in a kubeconfig Secret of the agent namespace
// that needs no files.
func secretConfig(t *testing.T, managed client.Client, name string) *rest.Config {
	t.Helper()
	var secret corev1.Secret
	if err := managed.Get(t.Context(), client.ObjectKey{Namespace: names.AgentNamespace, Name: name}, &secret); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data[names.KeyKubeconfig])
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// access is a question to the hub's authorizer.
type access struct {
	verb, group, resource, subresource, namespace, name string
}

func wantAllowed(t *testing.T, c client.Client, a access) {
	t.Helper()
	if !a.allowed(t, c) {
		t.Errorf("%+v is refused", a)
	}
}

func wantDenied(t *testing.T, c client.Client, a access) {
	t.Helper()
	if a.allowed(t, c) {
		t.Errorf("%+v is allowed", a)
	}
}

func (a access) allowed(t *testing.T, c client.Client) bool {
	t.Helper()
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: a.verb, Group: a.group, Resource: a.resource, Subresource: a.subresource, Namespace: a.namespace, Name: a.name,
		},
	}}
	if err := c.Create(t.Context(), review); err != nil {
		t.Fatal(err)
	}
	return review.Status.Allowed
}

// kubectl runs kubectl, the one that was built beside localkube or the user's.
func kubectl(t *testing.T, contextName string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), kubectlPath(), append([]string{"--kubeconfig", fleet.kubeconfig, "--context", contextName}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("kubectl %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// leaseWatch records when a lease was renewed, and how often the test renewed its own
// in between: both are slow on a busy machine, so that an agent that stops is counted and
// not timed.
type leaseWatch struct {
	mu    sync.Mutex
	times []time.Time
	// since is how often the test has renewed its own lease since the last renewal; most
	// is the largest of these.
	since, most int
}

// compare renews a lease of the test's own, until the test ends.
func (w *leaseWatch) compare(t *testing.T, hub client.Client, period time.Duration) {
	t.Helper()
	own := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, GenerateName: "compared-"}}
	if err := hub.Create(t.Context(), own); err != nil {
		t.Fatal(err)
	}
	w.mu.Lock()
	w.since, w.most = 0, 0
	w.mu.Unlock()
	go wait.UntilWithContext(t.Context(), func(ctx context.Context) {
		// Without a version: an answer that is lost does not end the comparison.
		before := own.DeepCopy()
		own.Spec.RenewTime = new(metav1.NowMicro())
		if err := hub.Patch(ctx, own, client.MergeFrom(before)); err != nil {
			return
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.since++
		w.most = max(w.most, w.since)
	}, period)
}

// missed is the largest number of renewals of the test's own lease between two of the agent's.
func (w *leaseWatch) missed() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.most
}

func (w *leaseWatch) last() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.times) == 0 {
		return time.Time{}
	}
	return w.times[len(w.times)-1]
}

// pace forgets what was before, once two renewals were less than most apart.
func (w *leaseWatch) pace(most time.Duration) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := len(w.times)
	if n < 2 || w.times[n-1].Sub(w.times[n-2]) > most {
		return fmt.Errorf("renewed at %v", w.times)
	}
	w.times = w.times[n-1:]
	return nil
}

func (w *leaseWatch) add(lease *coordinationv1.Lease) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if at := lease.Spec.RenewTime; at != nil && (len(w.times) == 0 || at.After(w.times[len(w.times)-1])) {
		w.times = append(w.times, at.Time)
		w.since = 0
	}
}

// watchLease records renewals until the end of the test.
func watchLease(t *testing.T, cluster string) *leaseWatch {
	t.Helper()
	hub, err := client.NewWithWatch(fleet.config(t, "hub"), client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	events, err := hub.Watch(t.Context(), &coordinationv1.LeaseList{}, client.InNamespace(cluster),
		client.MatchingFields{"metadata.name": names.ManagedClusterLease})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(events.Stop)
	w := &leaseWatch{}
	go func() {
		for event := range events.ResultChan() {
			if lease, ok := event.Object.(*coordinationv1.Lease); ok {
				w.add(lease)
			}
		}
	}()
	return w
}
