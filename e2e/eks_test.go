package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/awsauth"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/aws"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/aws/authenticator"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/aws/podwebhook"
)

const (
	eksRegion = "us-west-2"
	// eksIssuer is how all local clusters call the issuer of their tokens. Each has
	// keys of its own, and each is in an account with a provider of its own.
	eksIssuer = "kubernetes.default.svc.cluster.local"
)

// eks is a hub and two managed clusters on EKS, each in an account of its own.
type eks struct {
	*environment

	cloud *aws.Cloud
}

// foreignMapping is what somebody else has in aws-auth; nothing of ours changes it.
const foreignMapping = "- rolearn: arn:aws:iam::111111111111:role/node # ours, not OCM's\n  username: system:node:{{EC2PrivateDNSName}}\n"

// startEKS starts the clusters with flags of local up and an authenticationMode of
// the hub, and creates what a user is told to create before
// anything runs: the OIDC providers and the roles that aws prerequisites prints.
func startEKS(t *testing.T, mode string, flags ...string) *eks {
	t.Helper()
	if fleet.dir == "" {
		t.Skip("EKS is made of API servers that start with flags of this test; the local clusters that do run with the suite on local clusters")
	}
	cloud := aws.Start(t)
	hub := authenticator.New(t, cloud, aws.Cluster{ARN: eksARN("hub"), Issuer: "https://" + eksIssuer, AuthenticationMode: mode})
	flags = append(flags, "--managed", "2", "--image", sampleImage+"="+sampleBinary())
	for _, arg := range hub.APIServerArgs() {
		flags = append(flags, "--apiserver-arg", arg)
	}
	local, stop, err := startLocal(t.Context(), flags...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	// unjoin asks AWS, as the agent does.
	local.variables = cloud.Environment()
	e := &eks{environment: local, cloud: cloud}
	admin, err := os.ReadFile(e.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	hub.Serve(t, admin)
	err = e.client(t, "hub").Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: awsauth.Namespace, Name: awsauth.Name}, Data: map[string]string{"mapRoles": foreignMapping},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, cluster := range []string{"hub", "cluster1", "cluster2"} {
		podwebhook.Install(t, e.client(t, cluster), cloud, eksRegion)
		cloud.AddProvider(t, "aws", eksAccount(cluster), "https://"+eksIssuer, keySet(t, e.config(t, cluster)))
		e.addRoles(t, cluster)
	}
	return e
}

// leaseSeconds is how often agents tell the hub that they are there; a minute, which
// is usual, would make every wait for them as long.
const leaseSeconds = 10

// hasten has the agent of a cluster renew its lease often.
func (e *eks) hasten(t *testing.T, cluster string) {
	t.Helper()
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"leaseDurationSeconds":%d}}`, leaseSeconds))
	if err := e.client(t, "hub").Patch(t.Context(), &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: cluster}}, patch); err != nil {
		t.Fatal(err)
	}
}

// keySet is the key set (JWKS) of a cluster's tokens.
func keySet(t *testing.T, config *rest.Config) []byte {
	t.Helper()
	clients, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	data, err := clients.RESTClient().Get().AbsPath("/openid/v1/jwks").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// eksAccount is the account that a cluster is in.
func eksAccount(cluster string) string {
	return map[string]string{"hub": "111111111111", "cluster1": "222222222222", "cluster2": "333333333333"}[cluster]
}

// eksARN is the ARN of a cluster.
func eksARN(cluster string) string {
	return "arn:aws:eks:" + eksRegion + ":" + eksAccount(cluster) + ":cluster/" + cluster
}

// roles are the roles that aws prerequisites prints for a cluster.
func (e *eks) roles(t *testing.T, cluster string) []aws.Role {
	t.Helper()
	args := []string{"aws", "prerequisites", "hub", "--hub-cluster-arn", eksARN("hub"), "--oidc-provider", eksIssuer, "-o", "json"}
	if cluster != "hub" {
		args[2] = "managed"
		args = append(args, "--managed-cluster-arn", eksARN(cluster))
	}
	var list struct {
		Items []struct {
			ARN                       string
			TrustPolicy, AccessPolicy json.RawMessage
			Tags                      []struct{ Key, Value string }
		}
	}
	if err := json.Unmarshal([]byte(e.must(t, args...)), &list); err != nil || len(list.Items) == 0 {
		t.Fatalf("the roles of %s: %+v, %v", cluster, list, err)
	}
	var roles []aws.Role
	for _, item := range list.Items {
		role := aws.Role{ARN: item.ARN, Trust: string(item.TrustPolicy), Tags: map[string]string{}, Policies: map[string]string{}}
		for _, tag := range item.Tags {
			role.Tags[tag.Key] = tag.Value
		}
		if item.AccessPolicy != nil {
			role.Policies["access"] = string(item.AccessPolicy)
		}
		roles = append(roles, role)
	}
	return roles
}

func (e *eks) addRoles(t *testing.T, cluster string) {
	t.Helper()
	for _, role := range e.roles(t, cluster) {
		e.cloud.AddRole(t, role)
	}
}

// onHub is what there is on the hub and in its account for the managed clusters:
// roles, access entries, and what aws-auth says besides the mapping of others.
func (e *eks) onHub(t *testing.T) []string {
	t.Helper()
	var found []string
	for _, role := range e.cloud.Roles("aws", eksAccount("hub")) {
		if strings.Contains(role.ARN, ":role/ocm-hub-") {
			found = append(found, role.ARN)
		}
	}
	for _, entry := range e.cloud.AccessEntries(eksARN("hub")) {
		found = append(found, fmt.Sprintf("access entry of %s for %v", entry.PrincipalARN, entry.Groups))
	}
	var stored corev1.ConfigMap
	if err := e.client(t, "hub").Get(t.Context(), client.ObjectKey{Namespace: awsauth.Namespace, Name: awsauth.Name}, &stored); err != nil {
		t.Fatal(err)
	}
	ours, ok := strings.CutPrefix(stored.Data["mapRoles"], foreignMapping)
	if !ok {
		t.Errorf("the mapping of others is not as it was:\n%s", stored.Data["mapRoles"])
	}
	if ours != "" {
		found = append(found, "aws-auth: "+ours)
	}
	return found
}

// roleOnHub is the role that the hub made for a cluster.
func (e *eks) roleOnHub(t *testing.T, cluster string) string {
	t.Helper()
	for _, role := range e.cloud.Roles("aws", eksAccount("hub")) {
		if strings.Contains(role.ARN, ":role/ocm-hub-") && role.Tags["managed_cluster_name"] == cluster {
			return role.ARN
		}
	}
	t.Fatalf("no role for %s in %v", cluster, e.onHub(t))
	return ""
}

// awaitNothing waits until nothing on the hub mentions a role; "" is any role.
func (e *eks) awaitNothing(t *testing.T, role string) {
	t.Helper()
	eventually(t, "nothing is left of "+role, func(context.Context) error {
		if left := strings.Join(e.onHub(t), "\n"); left != "" && strings.Contains(left, role) {
			return fmt.Errorf("there is %s", left)
		}
		return nil
	})
}
