package registration_test

import (
	"context"
	"testing"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/awsarn"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/agent"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/awsauth"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/identity"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/aws"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/aws/authenticator"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
)

const issuer = "oidc.eks.us-west-2.amazonaws.com/id/MANAGED"

// eksFleet is a fleet whose hub and managed cluster are EKS clusters in two accounts.
type eksFleet struct {
	*fleet

	// plane is the hub's control plane.
	plane   *controlplane.Own
	account *aws.Cloud
	pair    identity.Pair
	// policy is what the role of the hub's controller may do.
	policy string
	// podIdentity is whether agents have their role from EKS Pod Identity.
	podIdentity bool
}

// newEKSFleet starts a fleet with the real aws-iam-authenticator, the roles that
// users are told to create, and the hub's controllers.
func newEKSFleet(t *testing.T) *eksFleet {
	t.Helper()
	f := newBareEKSFleet(t)
	f.startEKSHubAsCreator(t)
	return f
}

// startEKSHubAsCreator starts the hub's controllers, which may do what their role
// allows, and nothing else.
func (f *eksFleet) startEKSHubAsCreator(t *testing.T) {
	t.Helper()
	key := f.account.AddUser(t, "arn:aws:iam::"+f.pair.Hub.Account+":user/controller", f.policy)
	f.startEKSHub(t, credentials.NewStaticCredentialsProvider(key.AccessKeyID, key.SecretAccessKey, ""))
}

// newBareEKSFleet is newEKSFleet without the role and the controllers of the hub.
func newBareEKSFleet(t *testing.T) *eksFleet {
	t.Helper()
	account := aws.Start(t)
	pair := identity.Pair{
		Hub:     awsarn.Cluster{Partition: "aws", Region: "us-west-2", Account: "111111111111", Name: "hub"},
		Managed: awsarn.Cluster{Partition: "aws", Region: "us-west-2", Account: "222222222222", Name: "managed-0"},
	}
	eks := authenticator.StartHub(t, account, aws.Cluster{ARN: pair.Hub.String()})
	managed := controlplane.Lease(t, controlplane.WithIssuer("https://"+issuer))
	account.AddProvider(t, "aws", pair.Managed.Account, "https://"+issuer, managed.KeySet(t))
	putRole(t, account, pair.RoleOfAgents(identity.Source{Issuer: issuer}, identity.AgentAccounts(namespace, names.KlusterletName)))
	creatorRole, err := identity.CreatorRole(pair.Hub)
	if err != nil {
		t.Fatal(err)
	}
	creator := identity.Creator(pair.Hub, creatorRole, identity.Source{Issuer: issuer})
	access, err := creator.Access.Compact()
	if err != nil {
		t.Fatal(err)
	}
	return &eksFleet{fleet: newFleet(t, eks.ControlPlane, managed), plane: eks.Own, account: account, pair: pair, policy: access}
}

// startEKSHub starts the hub's controllers with AWS credentials.
func (f *eksFleet) startEKSHub(t *testing.T, own awssdk.CredentialsProvider) {
	t.Helper()
	granter := awsirsa.NewHub(awsirsa.HubConfig{Cluster: f.pair.Hub, PodIdentity: f.podIdentity})
	f.startHub(t, hub.Driver{Hub: granter, Setup: func(_ context.Context, mgr ctrl.Manager) error {
		config := awsConfig(t, f.account)
		config.Credentials = own
		granter.Connect(config, awsauth.Store{Live: mgr.GetAPIReader(), Client: mgr.GetClient()})
		return nil
	}})
}

// aws is the driver of the agent's pod.
func (f *eksFleet) aws(t *testing.T) func(driver.Identity) driver.Agent {
	t.Helper()
	return func(who driver.Identity) driver.Agent {
		return awsirsa.NewAgent(awsirsa.AgentConfig{
			Identity: who, Pair: f.pair, Clock: clock.RealClock{},
			Load: func(context.Context, string) (awssdk.Config, error) {
				return podConfig(t, f.account, f.managed, f.pair), nil
			},
		})
	}
}

// checkNoIdentity checks that the hub's account has nothing for the cluster.
func (f *eksFleet) checkNoIdentity(t *testing.T) {
	t.Helper()
	if _, left := f.account.Role(f.pair.HubRole().String()); left || len(f.account.AccessEntries(f.pair.Hub.String())) > 0 {
		t.Errorf("AWS has the role: %v, and the access entries %v", left, f.account.AccessEntries(f.pair.Hub.String()))
	}
}

// TestLifeOnEKS is the life of an EKS cluster at an EKS hub in another account, with
// the real aws-iam-authenticator and the roles that users are told to create: the
// hub's controllers make the cluster's role, the agent comes in with a web identity
// token, and nothing is left in IAM and EKS when the cluster is gone.
func TestLifeOnEKS(t *testing.T) {
	t.Parallel()
	f := newEKSFleet(t)
	f.startAgent(t, f.aws(t))

	f.awaitReport(t, agent.Requested, "waiting for a hub administrator to accept "+cluster+" (EKS cluster "+f.pair.Managed.String()+")")
	f.accept(t, true)
	f.awaitCondition(t, names.ConditionRegistrationGranted, metav1.ConditionTrue)
	f.awaitReport(t, agent.Running, "")
	f.awaitCondition(t, clusterv1.ManagedClusterConditionJoined, metav1.ConditionTrue)
	f.awaitCondition(t, clusterv1.ManagedClusterConditionAvailable, metav1.ConditionTrue)
	f.checkStored(t)

	f.detach(t)
	f.checkNoIdentity(t)
}

// putRole puts a role into IAM as its document says.
func putRole(t *testing.T, account *aws.Cloud, role identity.Role) {
	t.Helper()
	added := aws.Role{ARN: role.ARN.String(), Tags: map[string]string{}, Policies: map[string]string{}}
	var err error
	if added.Trust, err = role.Trust.Compact(); err != nil {
		t.Fatal(err)
	}
	for _, tag := range role.Tags {
		added.Tags[tag.Key] = tag.Value
	}
	if role.Access != nil {
		if added.Policies["access"], err = role.Access.Compact(); err != nil {
			t.Fatal(err)
		}
	}
	account.AddRole(t, added)
}

// awsConfig is the AWS configuration of a process that reaches AWS over the proxy.
func awsConfig(t *testing.T, account *aws.Cloud) awssdk.Config {
	t.Helper()
	return awssdk.Config{Region: "us-west-2", HTTPClient: account.HTTPClient(t)}
}

// podConfig is that of the agent's pod, whose ServiceAccount has the managed
// cluster's role.
func podConfig(t *testing.T, account *aws.Cloud, managed *controlplane.ControlPlane, pair identity.Pair) awssdk.Config {
	t.Helper()
	config := awsConfig(t, account)
	token := managed.Token(t, namespace, names.RegistrationAgentServiceAccount(names.KlusterletName), authenticationv1.TokenRequestSpec{Audiences: []string{aws.Audience}})
	config.Credentials = awssdk.NewCredentialsCache(stscreds.NewWebIdentityRoleProvider(sts.NewFromConfig(config), pair.ManagedRole().String(), webIdentity(token)))
	return config
}

// webIdentity is a token that is not in a file.
type webIdentity string

// GetIdentityToken implements stscreds.IdentityTokenRetriever.
func (w webIdentity) GetIdentityToken() ([]byte, error) { return []byte(w), nil }
