package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientauthv1 "k8s.io/client-go/pkg/apis/clientauthentication/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/aws"
)

// TestEKS takes two EKS clusters through their life at an EKS hub, with the
// commands of a user and nothing else: init, join, accept, an add-on,
// tokens past their end, denial, and unjoin with nothing left in IAM and EKS.
func TestEKS(t *testing.T) {
	t.Parallel()
	e := startEKS(t, aws.API, "--no-client-signer")
	hub := e.client(t, "hub")
	e.must(t, "init", "--context", "hub", "--wait", "--registration-auth=aws-irsa", "--hub-cluster-arn", eksARN("hub"))
	for _, cluster := range []string{"cluster1", "cluster2"} {
		e.joinEKS(t, cluster, "--addon-kubeclient-registration-auth", "token")
	}
	t.Run("accept shows whom it trusts, and the cluster becomes available", func(t *testing.T) {
		e.accept(t, "cluster2")
		awaitCondition(t, hub, "cluster2", clusterv1.ManagedClusterConditionAvailable)
	})
	t.Run("AWS throttles, and sees what was written late", e.testThrottled)
	if t.Failed() {
		t.FailNow()
	}
	e.hasten(t, "cluster1")
	t.Run("a ManifestWork is applied", e.testWork)
	t.Run("an add-on gets a token", e.testAddOn)
	t.Run("the agents outlive tokens and sessions", e.testRenewal)
	t.Run("a cluster's identity is good for that cluster alone", e.testIsolation)
	t.Run("a denied cluster has nothing left in AWS, and comes back", e.testDenied)
	t.Run("a Pod on the hub finds what is left in AWS", e.testOrphans)
	t.Run("unjoin leaves nothing in IAM and EKS", e.testUnjoin)
	if refused := e.cloud.RefusedHosts(); len(refused) > 0 {
		t.Errorf("somebody wanted to reach %v through the proxy", refused)
	}
}

// joinEKS joins a cluster as the hub's join command says.
func (e *eks) joinEKS(t *testing.T, cluster string, flags ...string) {
	t.Helper()
	e.must(t, append(append(e.joinArgs(t, cluster), "--registration-auth=aws-irsa",
		"--eks-hub-cluster-arn", eksARN("hub"), "--managed-cluster-arn", eksARN(cluster)), flags...)...)
}

// joinArgs are those of a join by somebody who has a bootstrap token of the hub and
// nothing else there.
func (e *eks) joinArgs(t *testing.T, cluster string) []string {
	t.Helper()
	token := strings.TrimSpace(e.must(t, "get", "token", "--context", "hub", "-o", "jsonpath={.hub-token}"))
	config := e.config(t, "hub")
	return []string{
		"join", "--context", cluster, "--cluster-name", cluster,
		"--hub-token-file", writeFile(t, []byte(token)), "--hub-apiserver", config.Host, "--ca-file", writeFile(t, config.CAData),
	}
}

// accept accepts a cluster, and checks that it is told whom it trusts.
func (e *eks) accept(t *testing.T, cluster string, flags ...string) {
	t.Helper()
	r := e.ocm(t, append([]string{"accept", "--context", "hub", "--clusters", cluster, "--wait", "--yes"}, flags...)...)
	for _, shown := range []string{eksARN(cluster), "AWS account " + eksAccount(cluster)} {
		if r.code != 0 || !strings.Contains(r.stdout+r.stderr, shown) {
			t.Fatalf("accept does not show %s: %v", shown, r)
		}
	}
}

// testThrottled: a cluster is accepted whatever AWS says, the condition says what
// fails, and what was left half done is finished.
func (e *eks) testThrottled(t *testing.T) {
	hub := e.client(t, "hub")
	e.cloud.Propagation(10, 0)
	defer e.cloud.Propagation(0, 0)
	throttled := e.cloud.Inject(aws.Fault{Operation: "CreateAccessEntry", Kind: aws.Throttled})
	eventually(t, "accept names the call that fails", func(context.Context) error {
		r := e.ocm(t, "accept", "--context", "hub", "--clusters", "cluster1", "--yes")
		slow := r.code == 4 || r.code == 0 && strings.Contains(r.stderr, "does not report yet")
		if slow { // Neither the agent nor the hub's controller has a time by which it must be through.
			return fmt.Errorf("the hub knows nothing yet: %v", r)
		}
		if r.code != 1 || !strings.Contains(r.stderr, "eks:CreateAccessEntry") {
			t.Fatalf("accept claims that the cluster has its identity, or does not name the call that fails: %v", r)
		}
		return nil
	})
	awaitCondition(t, hub, "cluster1", clusterv1.ManagedClusterConditionHubAccepted)
	eventually(t, "the condition names the call that fails", func(ctx context.Context) error {
		var cluster clusterv1.ManagedCluster
		if err := hub.Get(ctx, client.ObjectKey{Name: "cluster1"}, &cluster); err != nil {
			return err
		}
		c := apimeta.FindStatusCondition(cluster.Status.Conditions, names.ConditionRegistrationGranted)
		if c == nil || c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, "eks:CreateAccessEntry") {
			return fmt.Errorf("it is %+v", c)
		}
		return nil
	})
	throttled.Heal()
	awaitCondition(t, hub, "cluster1", names.ConditionRegistrationGranted)
	awaitCondition(t, hub, "cluster1", clusterv1.ManagedClusterConditionAvailable)
}

// testWork has the work agent, whose kubeconfig runs the AWS plugin, apply a ManifestWork,
// change it and take it away.
func (e *eks) testWork(t *testing.T) {
	const cluster, name = "cluster2", "e2e-eks-work"
	managed := e.client(t, cluster)
	key := client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: name}
	for _, color := range []string{"blue", "green"} {
		manifest := fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: default, name: %s}\ndata: {color: %s}\n", name, color)
		// The command waits until the work is Applied and Available at this generation.
		e.must(t, "create", "work", name, "--context", "hub", "--clusters", cluster, "-f", writeFile(t, []byte(manifest)), "--overwrite", "--wait")
		var found corev1.ConfigMap
		if err := managed.Get(t.Context(), key, &found); err != nil || found.Data["color"] != color {
			t.Fatalf("want %s: %+v, %v", color, found.Data, err)
		}
	}
	e.must(t, "check", "work", name, "--context", "hub", "--cluster", cluster)
	e.must(t, "delete", "work", name, "--context", "hub", "--clusters", cluster, "--yes")
	if err := managed.Get(t.Context(), key, &corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
		t.Errorf("the ConfigMap of a deleted work: %v", err)
	}
}

// testAddOn: a token needs no signer. TestMixedHub has a certificate.
func (e *eks) testAddOn(t *testing.T) {
	a := e.installSample(t, "e2e-eks")
	a.add(t, "cluster2")
	a.awaitAgent(t, "cluster2")
	last := a.awaitBeat(t, "cluster2", "token", beat{})
	if want := names.ServiceAccountUser("cluster2", names.AddOnServiceAccount("cluster2", a.name)); last.user != want {
		t.Errorf("the add-on is %s, want %s", last.user, want)
	}
}

// testRenewal lets an hour pass in AWS: presigned requests end after 15 minutes,
// sessions after an hour.
func (e *eks) testRenewal(t *testing.T) {
	hub := e.client(t, "hub")
	sessions := e.sessions("cluster1")
	const passed = 61 * time.Minute
	e.cloud.Advance(passed)
	defer e.cloud.Advance(-passed) // Tokens of API servers go by the time of this machine.
	eventually(t, "the agent has a new session", func(context.Context) error {
		if now := e.sessions("cluster1"); now <= sessions {
			return fmt.Errorf("it assumed its role %d times, as before", now)
		}
		return nil
	})
	e.awaitRenewedLease(t, "cluster1")
	awaitCondition(t, hub, "cluster1", clusterv1.ManagedClusterConditionAvailable)
}

// awaitRenewedLease waits until the agent of a cluster renews its lease.
func (e *environment) awaitRenewedLease(t *testing.T, cluster string) {
	t.Helper()
	hub := e.client(t, "hub")
	began := metav1.NowMicro()
	eventually(t, "the lease of "+cluster+" is renewed", func(ctx context.Context) error {
		var lease coordinationv1.Lease
		if err := hub.Get(ctx, client.ObjectKey{Namespace: cluster, Name: names.ManagedClusterLease}, &lease); err != nil {
			return err
		}
		if lease.Spec.RenewTime == nil || lease.Spec.RenewTime.Before(&began) {
			return fmt.Errorf("last at %v", lease.Spec.RenewTime)
		}
		return nil
	})
}

// sessions counts how often the agents of a cluster have assumed their role on the
// hub.
func (e *eks) sessions(cluster string) int {
	count := 0
	for _, call := range e.cloud.Calls() {
		if call.Operation == "AssumeRole" && call.Code == "" && strings.Contains(call.Caller, eksAccount(cluster)) {
			count++
		}
	}
	return count
}

// testIsolation is cluster2 with all that its agent has, against cluster1.
func (e *eks) testIsolation(t *testing.T) {
	own, other := e.roleOnHub(t, "cluster2"), e.roleOnHub(t, "cluster1")
	stolen, err := e.token(t, "cluster2", other)
	if err == nil || !strings.Contains(err.Error(), "AccessDenied") {
		t.Errorf("the agent of cluster2 got a token of cluster1: %q, %v", stolen, err)
	}
	token, err := e.token(t, "cluster2", own)
	if err != nil {
		t.Fatal(err)
	}
	config := e.config(t, "hub")
	config.BearerToken, config.CertData, config.KeyData = token, nil, nil
	agent := newClient(t, config)
	for _, object := range []client.Object{
		&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster2", Name: names.ManagedClusterLease}},
		&clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "cluster2"}},
	} {
		if err := agent.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			t.Errorf("the agent of cluster2: %v", err)
		}
	}
	for _, object := range []client.Object{
		&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster1", Name: names.ManagedClusterLease}},
		&clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "cluster1"}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "aws-auth"}},
	} {
		if err := agent.Get(t.Context(), client.ObjectKeyFromObject(object), object); !apierrors.IsForbidden(err) {
			t.Errorf("the agent of cluster2 may read %T %s/%s: %v", object, object.GetNamespace(), object.GetName(), err)
		}
	}
}

// token asks aws get-token for a token of a role, with what a Pod of the cluster's
// agent has.
func (e *eks) token(t *testing.T, cluster, role string) (string, error) {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
		Namespace: names.AgentNamespace, Name: names.RegistrationAgentServiceAccount(names.KlusterletName),
	}}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: []string{aws.Audience}}}
	if err := e.client(t, cluster).SubResource("token").Create(t.Context(), account, request); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), binary(), "aws", "get-token", "--cluster-name", "hub", "--region", eksRegion, "--role-arn", role)
	command.Env = append(append(os.Environ(), e.cloud.Environment()...),
		"AWS_ROLE_ARN="+e.roles(t, cluster)[0].ARN, "AWS_WEB_IDENTITY_TOKEN_FILE="+writeFile(t, []byte(request.Status.Token)))
	var stderr strings.Builder
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, stderr.String())
	}
	var credential clientauthv1.ExecCredential
	if err := json.Unmarshal(out, &credential); err != nil || credential.Status == nil {
		t.Fatalf("aws get-token printed no credential: %v", err)
	}
	return credential.Status.Token, nil
}

// testDenied: what a denial takes away is away in AWS, and the same cluster gets
// it again.
func (e *eks) testDenied(t *testing.T) {
	hub := e.client(t, "hub")
	role := e.roleOnHub(t, "cluster1")
	e.must(t, "accept", "--context", "hub", "--clusters", "cluster1", "--deny", "--yes")
	e.awaitNothing(t, role)
	e.accept(t, "cluster1")
	awaitCondition(t, hub, "cluster1", names.ConditionRegistrationGranted)
	awaitCondition(t, hub, "cluster1", clusterv1.ManagedClusterConditionAvailable)
}

func (e *eks) testUnjoin(t *testing.T) {
	for _, cluster := range []string{"cluster1", "cluster2"} {
		e.must(t, "unjoin", "--yes", "--context", cluster, "--hub-context", "hub", "--cluster-name", cluster, "--wait")
	}
	e.awaitNothing(t, "")
}
