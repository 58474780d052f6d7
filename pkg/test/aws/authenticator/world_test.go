package authenticator_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/aws"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/aws/authenticator"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
)

const (
	patience = time.Minute

	region         = "us-west-2"
	hubAccount     = "111122223333"
	managedAccount = "444455556666"
	hubCluster     = "arn:aws:eks:us-west-2:111122223333:cluster/hub-0"
	issuerURL      = "https://oidc.eks.us-west-2.amazonaws.com/id/MANAGED0"

	namespace = "open-cluster-management-agent"
	account   = "klusterlet-registration-sa"
)

// world is a hub on EKS and a managed cluster on EKS, in two accounts.
type world struct {
	cloud    *aws.Cloud
	hub      *authenticator.Hub
	managed  *controlplane.ControlPlane
	provider string
	// admin are clients of the hub's account.
	admin awssdk.Config
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{cloud: aws.Start(t)}
	w.hub = authenticator.StartHub(t, w.cloud, aws.Cluster{ARN: hubCluster})
	w.managed = controlplane.Lease(t, controlplane.WithIssuer(issuerURL))
	w.provider = w.cloud.AddProvider(t, "aws", managedAccount, issuerURL, w.managed.KeySet(t))
	w.admin = newConfig(t, w.cloud, region)
	key := w.cloud.AddAdmin(t, "aws", hubAccount)
	w.admin.Credentials = credentials.NewStaticCredentialsProvider(key.AccessKeyID, key.SecretAccessKey, "")
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "other"}},
	} {
		if err := w.managed.Client(t).Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// newConfig is the configuration of clients that reach the emulator and see every
// failure.
func newConfig(t *testing.T, cloud *aws.Cloud, region string) awssdk.Config {
	t.Helper()
	return awssdk.Config{
		Region: region, HTTPClient: cloud.HTTPClient(t), Credentials: awssdk.AnonymousCredentials{},
		Retryer: func() awssdk.Retryer { return awssdk.NopRetryer{} },
	}
}

// cluster is a managed cluster with its two roles.
type cluster struct {
	*world

	name                 string
	managedRole, hubRole string
	tags                 map[string]string
}

// newCluster prepares the managed cluster's role, before anything exists on the
// hub's side.
func (w *world) newCluster(t *testing.T, name string) *cluster {
	t.Helper()
	c := &cluster{
		world: w, name: name, tags: map[string]string{"hub_cluster_name": "hub-0", "managed_cluster_name": name},
		managedRole: "arn:aws:iam::" + managedAccount + ":role/ocm-managed-cluster-" + name,
		hubRole:     "arn:aws:iam::" + hubAccount + ":role/ocm-hub-" + name,
	}
	c.addManagedRole(t)
	return c
}

func (c *cluster) addManagedRole(t *testing.T) {
	t.Helper()
	issuer := strings.TrimPrefix(issuerURL, "https://")
	c.cloud.AddRole(t, aws.Role{
		ARN: c.managedRole, Tags: c.tags,
		Policies: map[string]string{"assume": fmt.Sprintf(
			`{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":["sts:AssumeRole","sts:TagSession"],"Resource":%q}}`, c.hubRole)},
		Trust: fmt.Sprintf(`{"Version":"2012-10-17","Statement":{"Effect":"Allow","Principal":{"Federated":%q},"Action":"sts:AssumeRoleWithWebIdentity",
			"Condition":{"StringEquals":{"%s:sub":"system:serviceaccount:%s:%s","%s:aud":"sts.amazonaws.com"}}}}`,
			c.provider, issuer, namespace, account, issuer),
	})
}

// accept creates what the hub's side needs: the hub role and an access entry.
func (c *cluster) accept(t *testing.T) {
	t.Helper()
	c.createHubRole(t)
	c.createEntry(t)
}

func (c *cluster) createHubRole(t *testing.T) {
	t.Helper()
	trust := fmt.Sprintf(`{"Version":"2012-10-17","Statement":{"Effect":"Allow","Principal":{"AWS":%q},"Action":"sts:AssumeRole",
		"Condition":{"StringEquals":{"aws:PrincipalTag/hub_cluster_name":"hub-0","aws:PrincipalTag/managed_cluster_name":%q}}}}`, c.managedRole, c.name)
	if _, err := iam.NewFromConfig(c.admin).CreateRole(t.Context(), &iam.CreateRoleInput{
		RoleName: new("ocm-hub-" + c.name), AssumeRolePolicyDocument: &trust,
	}); err != nil {
		t.Fatal(err)
	}
}

func (c *cluster) deleteHubRole(t *testing.T) {
	t.Helper()
	if _, err := iam.NewFromConfig(c.admin).DeleteRole(t.Context(), &iam.DeleteRoleInput{RoleName: new("ocm-hub-" + c.name)}); err != nil {
		t.Fatal(err)
	}
}

func (c *cluster) createEntry(t *testing.T) {
	t.Helper()
	if _, err := eks.NewFromConfig(c.admin).CreateAccessEntry(t.Context(), &eks.CreateAccessEntryInput{
		ClusterName: new("hub-0"), PrincipalArn: &c.hubRole, Username: &c.name,
		KubernetesGroups: []string{"open-cluster-management:" + c.name},
	}); err != nil {
		t.Fatal(err)
	}
}

func (c *cluster) deleteEntry(t *testing.T) {
	t.Helper()
	if _, err := eks.NewFromConfig(c.admin).DeleteAccessEntry(t.Context(), &eks.DeleteAccessEntryInput{
		ClusterName: new("hub-0"), PrincipalArn: &c.hubRole,
	}); err != nil {
		t.Fatal(err)
	}
}

// identity is the configuration of a Pod whose ServiceAccount has the managed
// cluster's role.
func (c *cluster) identity(t *testing.T, serviceAccount string) awssdk.Config {
	t.Helper()
	config := newConfig(t, c.cloud, region)
	token := c.managed.Token(t, namespace, serviceAccount, authenticationv1.TokenRequestSpec{Audiences: []string{aws.Audience}})
	config.Credentials = awssdk.NewCredentialsCache(stscreds.NewWebIdentityRoleProvider(sts.NewFromConfig(config), c.managedRole, text(token)))
	return config
}

// text is a token that is not in a file.
type text string

// GetIdentityToken implements stscreds.IdentityTokenRetriever.
func (t text) GetIdentityToken() ([]byte, error) { return []byte(t), nil }

// assume is the configuration of who has assumed the hub role, first with the
// identity of the agent.
func (c *cluster) assume(t *testing.T, options ...func(*stscreds.AssumeRoleOptions)) awssdk.Config {
	t.Helper()
	config := c.identity(t, account)
	config.Credentials = awssdk.NewCredentialsCache(stscreds.NewAssumeRoleProvider(sts.NewFromConfig(config), c.hubRole, options...))
	return config
}

// request is how a token is made, as EKS wants it unless something is changed.
type request struct {
	cluster, host string
	signed        time.Time
}

// token presigns a call of GetCallerIdentity, as
// https://github.com/kubernetes-sigs/aws-iam-authenticator describes it.
func token(t *testing.T, config awssdk.Config, change func(*request)) (string, error) {
	t.Helper()
	made := request{cluster: "hub-0", host: "sts." + region + ".amazonaws.com", signed: clock.RealClock{}.Now()}
	if change != nil {
		change(&made)
	}
	signer, err := config.Credentials.Retrieve(t.Context())
	if err != nil {
		return "", err
	}
	get, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
		"https://"+made.host+"/?Action=GetCallerIdentity&Version=2011-06-15&X-Amz-Expires=60", nil)
	if err != nil {
		t.Fatal(err)
	}
	get.Header.Set("X-K8s-Aws-Id", made.cluster)
	nothing := sha256.Sum256(nil)
	address, _, err := v4.NewSigner().PresignHTTP(t.Context(), signer, get, hex.EncodeToString(nothing[:]), "sts", config.Region, made.signed)
	if err != nil {
		t.Fatal(err)
	}
	return "k8s-aws-v1." + base64.RawURLEncoding.EncodeToString([]byte(address)), nil
}

// mustToken is a token as EKS wants it.
func mustToken(t *testing.T, config awssdk.Config) string {
	t.Helper()
	made, err := token(t, config, nil)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// whoAmI is who the hub's API server takes a token for.
func whoAmI(ctx context.Context, hub *authenticator.Hub, token string) (authenticationv1.UserInfo, error) {
	clients, err := kubernetes.NewForConfig(hub.ConfigForToken(token))
	if err != nil {
		return authenticationv1.UserInfo{}, err
	}
	review, err := clients.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return authenticationv1.UserInfo{}, err
	}
	return review.Status.UserInfo, nil
}

func newSTS(config awssdk.Config) *sts.Client { return sts.NewFromConfig(config) }

func tokenFor(audience string) authenticationv1.TokenRequestSpec {
	return authenticationv1.TokenRequestSpec{Audiences: []string{audience}}
}
