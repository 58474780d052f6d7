package e2e_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/aws"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installation"
)

// TestMixedHub has a cluster with an AWS identity and one with a certificate side
// by side, on a hub on EKS that signs certificates as well and knows roles by the
// ConfigMap aws-auth alone. Then the second changes to AWS and back.
func TestMixedHub(t *testing.T) {
	t.Parallel()
	e := startEKS(t, aws.ConfigMap)
	hub := e.client(t, "hub")
	e.must(t, "init", "--context", "hub", "--wait", "--registration-auth=csr,aws-irsa", "--hub-cluster-arn", eksARN("hub"))
	e.joinEKS(t, "cluster1")
	eventually(t, "the hub knows cluster1", func(ctx context.Context) error {
		return hub.Get(ctx, client.ObjectKey{Name: "cluster1"}, &clusterv1.ManagedCluster{})
	})
	if r := e.ocm(t, "accept", "--context", "hub", "--all-pending", "--wait", "--yes"); r.code != 0 || !strings.Contains(r.stderr, eksARN("cluster1")) {
		t.Fatalf("it does not accept whoever waits, or does not show whom: %v", r)
	}
	e.must(t, "join", "--hub-context", "hub", "--context", "cluster2", "--cluster-name", "cluster2", "--wait")
	for _, cluster := range []string{"cluster1", "cluster2"} {
		awaitCondition(t, hub, cluster, clusterv1.ManagedClusterConditionAvailable)
		e.hasten(t, cluster)
	}
	t.Run("the hub shows who registered how", func(t *testing.T) {
		shown := e.must(t, "get", "clusters", "--context", "hub", "-o", "yaml")
		if !strings.Contains(shown, eksARN("cluster1")) || strings.Contains(shown, eksARN("cluster2")) {
			t.Errorf("it shows\n%s", shown)
		}
	})
	t.Run("an add-on of a cluster with an AWS identity gets a certificate", e.testCertificate)
	t.Run("a cluster changes its driver and keeps its name and its works", e.testChange)
}

// testCertificate: the approver that add-ons have from addon-framework knows agents
// by the prefix system:, which EKS gives to nobody. So an administrator approves.
func (e *eks) testCertificate(t *testing.T) {
	a := e.installSample(t, "e2e-mixed")
	a.add(t, "cluster1")
	a.awaitAgent(t, "cluster1")
	eventually(t, "the agent's request for the add-on is approved", func(ctx context.Context) error {
		var requests certificatesv1.CertificateSigningRequestList
		if err := a.hub.List(ctx, &requests, client.MatchingLabels{names.LabelClusterName: "cluster1", names.LabelAddOnName: a.name}); err != nil {
			return err
		}
		for _, request := range requests.Items {
			if request.Spec.Username == names.MappedClusterUser("cluster1") {
				_, err := e.kubectlOnHub(ctx, "certificate", "approve", request.Name)
				return err
			}
		}
		return fmt.Errorf("there are %d requests, none of them the agent's", len(requests.Items))
	})
	if last, want := a.awaitBeat(t, "cluster1", "certificate", beat{}), names.AddOnUser("cluster1", a.name, a.name); last.user != want {
		t.Errorf("the add-on is %s, want %s", last.user, want)
	}
}

// kubectlOnHub runs kubectl on the hub and returns what it printed.
func (e *environment) kubectlOnHub(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, kubectlPath(), append([]string{"--kubeconfig", e.kubeconfig, "--context", "hub"}, args...)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("kubectl %v: %w: %s", args, err, out)
	}
	return string(out), nil
}

func (e *eks) testChange(t *testing.T) {
	hub := e.client(t, "hub")
	work := installation.Work("cluster2", "kept")
	if err := hub.Create(t.Context(), work); err != nil {
		t.Fatal(err)
	}
	cluster := &clusterv1.ManagedCluster{}
	if err := hub.Get(t.Context(), client.ObjectKey{Name: "cluster2"}, cluster); err != nil {
		t.Fatal(err)
	}
	kept := func(step string) {
		t.Helper()
		after, workAfter := &clusterv1.ManagedCluster{}, &workv1.ManifestWork{}
		err := hub.Get(t.Context(), client.ObjectKey{Name: "cluster2"}, after)
		if err == nil {
			err = hub.Get(t.Context(), client.ObjectKeyFromObject(work), workAfter)
		}
		if err != nil || after.UID != cluster.UID || workAfter.UID != work.UID || workAfter.DeletionTimestamp != nil {
			t.Errorf("%s: the cluster or its work is another one: %v", step, err)
		}
	}
	join := []string{"join", "--hub-context", "hub", "--context", "cluster2", "--cluster-name", "cluster2", "--wait"}
	e.must(t, append(join, "--registration-auth=aws-irsa", "--eks-hub-cluster-arn", eksARN("hub"), "--managed-cluster-arn", eksARN("cluster2"))...)
	awaitCondition(t, hub, "cluster2", names.ConditionRegistrationGranted)
	e.awaitRenewedLease(t, "cluster2")
	kept("with AWS")
	role := e.roleOnHub(t, "cluster2")
	if mapped := strings.Join(e.onHub(t), "\n"); !strings.Contains(mapped, "rolearn: "+role) {
		t.Errorf("aws-auth does not map %s: %s", role, mapped)
	}

	e.joinAsPrinted(t, "cluster2", "--registration-auth=csr")
	e.awaitRenewedLease(t, "cluster2")
	kept("with certificates again")
	e.awaitNothing(t, role)
}

// joinAsPrinted joins a cluster with --wait, and does on the hub what the command says
// while it waits.
func (e *eks) joinAsPrinted(t *testing.T, cluster string, flags ...string) {
	t.Helper()
	join := exec.CommandContext(t.Context(), binary(), append(append(e.joinArgs(t, cluster), "--wait"), flags...)...)
	join.Env = append(append(os.Environ(), e.variables...), "KUBECONFIG="+e.kubeconfig)
	stderr, err := join.StderrPipe()
	if err == nil {
		err = join.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		said = append(said, lines.Text())
		if _, accept, ok := strings.Cut(lines.Text(), "On the hub, run:  kubectl ocm "); ok {
			e.must(t, append(strings.Fields(accept), "--context", "hub", "--yes", "--wait")...)
		}
	}
	if err := join.Wait(); err != nil {
		t.Errorf("join ended with %v:\n%s", err, strings.Join(said, "\n"))
	}
}
