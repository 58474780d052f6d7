package awsirsa_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/awsarn"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/kubeconfig"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/scheme"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/identity"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/drivertest"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/aws"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/aws/authenticator"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installation"
)

const (
	issuer    = "oidc.eks.us-west-2.amazonaws.com/id/MANAGED"
	hubARN    = "arn:aws:eks:us-west-2:111111111111:cluster/hub"
	namespace = "open-cluster-management-agent"
)

// account is a hub on EKS, and another account with managed clusters whose pods
// have tokens of one real API server.
type account struct {
	cloud   *aws.Cloud
	hub     *authenticator.Hub
	admin   client.Client
	managed *controlplane.ControlPlane
}

func newAccount(t *testing.T) *account {
	t.Helper()
	a := &account{cloud: aws.Start(t), managed: controlplane.Lease(t, controlplane.WithIssuer("https://"+issuer))}
	a.hub = authenticator.StartHub(t, a.cloud, aws.Cluster{ARN: hubARN})
	a.admin = a.hub.Client(t)
	installation.Hub(t, a.admin, manifests.Hub{})
	a.cloud.AddProvider(t, "aws", "222222222222", "https://"+issuer, a.managed.KeySet(t))
	installation.Create(t, a.managed.Client(t),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: names.RegistrationAgentServiceAccount(names.KlusterletName)}})
	return a
}

// pair are the hub and the EKS cluster of an identity.
func pair(id driver.Identity) identity.Pair {
	cluster := func(account, name string) awsarn.Cluster {
		return awsarn.Cluster{Partition: "aws", Region: "us-west-2", Account: account, Name: name}
	}
	return identity.Pair{Hub: cluster("111111111111", "hub"), Managed: cluster("222222222222", id.Cluster)}
}

// put puts a role into IAM as its document says.
func (a *account) put(t *testing.T, role identity.Role) {
	t.Helper()
	added := aws.Role{ARN: role.ARN.String(), Trust: compact(t, &role.Trust), Tags: map[string]string{}, Policies: map[string]string{}}
	for _, tag := range role.Tags {
		added.Tags[tag.Key] = tag.Value
	}
	if role.Access != nil {
		added.Policies["access"] = compact(t, role.Access)
	}
	a.cloud.AddRole(t, added)
}

func compact(t *testing.T, policy *identity.Policy) string {
	t.Helper()
	text, err := policy.Compact()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// config is the AWS configuration of a process that reaches AWS over the proxy.
func (a *account) config(t *testing.T) awssdk.Config {
	t.Helper()
	return awssdk.Config{Region: "us-west-2", HTTPClient: a.cloud.HTTPClient(t)}
}

// pod is the configuration of the agent's pod, whose ServiceAccount has the managed
// cluster's role.
func (a *account) pod(t *testing.T, of identity.Pair) awssdk.Config {
	t.Helper()
	config := a.config(t)
	token := a.managed.Token(t, namespace, names.RegistrationAgentServiceAccount(names.KlusterletName), authenticationv1.TokenRequestSpec{Audiences: []string{aws.Audience}})
	config.Credentials = awssdk.NewCredentialsCache(stscreds.NewWebIdentityRoleProvider(sts.NewFromConfig(config), of.ManagedRole().String(), text(token)))
	return config
}

// text is a web identity token that is not in a file.
type text string

// GetIdentityToken implements stscreds.IdentityTokenRetriever.
func (t text) GetIdentityToken() ([]byte, error) { return []byte(t), nil }

// decide accepts or denies a cluster on the hub, without the hub's controllers.
func (a *account) decide(t *testing.T, id driver.Identity, accepted bool, status metav1.ConditionStatus) {
	t.Helper()
	cluster := &clusterv1.ManagedCluster{}
	if err := a.admin.Get(t.Context(), client.ObjectKey{Name: id.Cluster}, cluster); err != nil {
		t.Fatal(err)
	}
	cluster.Spec.HubAcceptsClient = accepted
	if err := a.admin.Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	apimeta.SetStatusCondition(&cluster.Status.Conditions, metav1.Condition{Type: clusterv1.ManagedClusterConditionHubAccepted, Status: status, Reason: "Test"})
	if err := a.admin.Status().Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
}

// grant makes the role on the hub and maps it to the cluster's user and group.
func (a *account) grant(t *testing.T, id driver.Identity) {
	t.Helper()
	role := pair(id).RoleOnHub(identity.Source{Issuer: issuer})
	a.put(t, role)
	admin := a.config(t)
	key := a.cloud.AddAdmin(t, "aws", "111111111111")
	admin.Credentials = credentials.NewStaticCredentialsProvider(key.AccessKeyID, key.SecretAccessKey, "")
	if _, err := eks.NewFromConfig(admin).CreateAccessEntry(t.Context(), &eks.CreateAccessEntryInput{
		ClusterName: new("hub"), PrincipalArn: new(role.ARN.String()), Username: new(names.MappedClusterUser(id.Cluster)), KubernetesGroups: []string{names.MappedClusterGroup(id.Cluster)},
	}); err != nil {
		t.Fatal(err)
	}
	a.decide(t, id, true, metav1.ConditionTrue)
}

// TestConformance runs the suite of agents against a real API server that asks the
// real aws-iam-authenticator, with the roles and policies that users are told to
// create.
func TestConformance(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	address, err := kubeconfig.ParseHub(a.hub.KubeconfigFor(t, "nobody"))
	if err != nil {
		t.Fatal(err)
	}
	drivertest.RunAgent(t, drivertest.AgentSuite{
		New: func(id driver.Identity) driver.Agent {
			agent := awsirsa.NewAgent(awsirsa.AgentConfig{
				Identity: id, Pair: pair(id), Clock: clock.RealClock{},
				Load: func(context.Context, string) (awssdk.Config, error) { return a.pod(t, pair(id)), nil },
			})
			cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: id.Cluster}}
			agent.Decorate(cluster)
			installation.Create(t, a.admin, cluster)
			return agent
		},
		Hub:     a.hub.Config(t),
		Address: address,
		User:    func(id driver.Identity) string { return names.MappedClusterUser(id.Cluster) },
		Grant: func(t *testing.T, id driver.Identity) {
			t.Helper()
			a.put(t, pair(id).RoleOfAgents(identity.Source{Issuer: issuer}, identity.AgentAccounts(namespace, names.KlusterletName)))
			a.grant(t, id)
		},
		Refuse: func(t *testing.T, id driver.Identity) {
			t.Helper()
			a.decide(t, id, false, metav1.ConditionFalse)
		},
	})
}

// TestDenied: as long as the hub has not made the role, no request is sent, and the
// error says what is missing where.
func TestDenied(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	id := driver.Identity{Cluster: "denied", Agent: "a1"}
	a.put(t, pair(id).RoleOfAgents(identity.Source{Issuer: issuer}, identity.AgentAccounts(namespace, names.KlusterletName)))
	agent := awsirsa.NewAgent(awsirsa.AgentConfig{
		Identity: id, Pair: pair(id), Clock: clock.RealClock{},
		Load: func(context.Context, string) (awssdk.Config, error) { return a.pod(t, pair(id)), nil },
	})
	address, err := kubeconfig.ParseHub(a.hub.KubeconfigFor(t, "nobody"))
	if err != nil {
		t.Fatal(err)
	}
	stored, err := driver.SecretData(address, id, agent.User(), nil)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := agent.Open(address, "", stored)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	hub, err := client.New(conn.Config(), client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	cluster := client.ObjectKey{Name: id.Cluster}
	if err := hub.Get(t.Context(), cluster, &clusterv1.ManagedCluster{}); !errors.Is(err, driver.ErrDenied) || !strings.Contains(err.Error(), pair(id).HubRole().String()) {
		t.Errorf("without a role on the hub: %v", err)
	}
	// A role that the cluster's own may assume, and no access entry: AWS lets it
	// through, and the hub does not know it.
	a.put(t, pair(id).RoleOnHub(identity.Source{Issuer: issuer}))
	if err := hub.Get(t.Context(), cluster, &clusterv1.ManagedCluster{}); !apierrors.IsUnauthorized(err) {
		t.Errorf("without an access entry: %v", err)
	}
}
