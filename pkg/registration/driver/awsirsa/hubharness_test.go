package awsirsa_test

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/awsarn"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/awsauth"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/cloud"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/identity"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/aws"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
)

const (
	hubAccount     = "111122223333"
	managedAccount = "444455556666"
	hubRegion      = "us-west-2"

	patience = await.Patience
)

var plane *controlplane.ControlPlane

func TestMain(m *testing.M) { controlplane.Main(m, &plane) }

// errCut is the answer of a network that fails.
var errCut = errors.New("the network is down")

// network is between a driver and everything that it calls: it counts requests,
// and fails as a test wants.
type network struct {
	mu sync.Mutex
	// requests counts all, writes the changes of Kubernetes objects.
	requests, writes int
	// left is how many requests pass before the network fails, negative for all;
	// lost says that the first that fails arrives nevertheless.
	left int
	lost bool
}

// fail implements drivertest.GranterSuite.Fail.
func (n *network) fail(after int, lost bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.left, n.lost = after, lost
}

func (n *network) counts() (requests, writes int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.requests, n.writes
}

// pass decides about one request.
func (n *network) pass() (sent, answered bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.requests++
	switch {
	case n.left > 0:
		n.left--
	case n.left == 0 && n.lost:
		n.lost = false
		return true, false
	case n.left == 0:
		return false, false
	}
	return true, true
}

// through puts the network before a round tripper.
func (n *network) through(next http.RoundTripper) http.RoundTripper { return &link{n, next} }

type link struct {
	network *network
	next    http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (l *link) RoundTrip(r *http.Request) (*http.Response, error) {
	sent, answered := l.network.pass()
	if !sent {
		return nil, errCut
	}
	response, err := l.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if r.Method == http.MethodPut && response.StatusCode == http.StatusOK {
		l.network.mu.Lock()
		l.network.writes++
		l.network.mu.Unlock()
	}
	if !answered {
		return nil, errors.Join(errCut, response.Body.Close())
	}
	return response, nil
}

// env is an EKS hub in a cloud of its own, and a way to it that can fail.
type env struct {
	cloud   *aws.Cloud
	network *network
	hub     awsarn.Cluster
	config  awsirsa.HubConfig
	aws     awssdk.Config
	store   awsauth.Store
	admin   client.Client
}

// newEnv starts a cloud with a hub in an authentication mode. The hub controller
// may do what prerequisites print for it and nothing else.
func newEnv(t *testing.T, mode string) *env {
	t.Helper()
	e := &env{cloud: aws.Start(t), network: &network{left: -1}, admin: plane.Client(t)}
	e.hub = awsarn.Cluster{Partition: awsarn.AWS, Region: hubRegion, Account: hubAccount, Name: "hub-" + strings.ToLower(rand.Text()[:8])}
	e.config = awsirsa.HubConfig{Cluster: e.hub, Tags: cloud.Tags{"team": "fleet"}, Mapping: awsirsa.MapAuto}
	e.cloud.AddCluster(t, aws.Cluster{ARN: e.hub.String(), AuthenticationMode: mode})
	e.aws = e.awsConfig(t, e.creator(t))
	config := plane.Config(t)
	config.Wrap(e.network.through)
	behind := plane.ClientFor(t, config)
	e.store = awsauth.Store{Live: behind, Client: behind}
	ensureAWSAuth(t, e.admin)
	// The client finds out once which resources there are.
	if err := behind.Get(t.Context(), awsAuthKey(), &corev1.ConfigMap{}); err != nil {
		t.Fatal(err)
	}
	return e
}

// creator is a user with the policy that prerequisites print.
func (e *env) creator(t *testing.T) aws.Credentials {
	t.Helper()
	role := identity.Creator(e.hub, awsarn.Role{}, identity.Source{Issuer: "oidc"})
	policy, err := role.Access.Compact()
	if err != nil {
		t.Fatal(err)
	}
	return e.cloud.AddUser(t, "arn:aws:iam::"+hubAccount+":user/hub", policy)
}

func (e *env) awsConfig(t *testing.T, key aws.Credentials) awssdk.Config {
	t.Helper()
	reached := e.cloud.HTTPClient(t)
	reached.Transport = e.network.through(reached.Transport)
	return awssdk.Config{
		HTTPClient:  reached,
		Credentials: credentials.NewStaticCredentialsProvider(key.AccessKeyID, key.SecretAccessKey, key.SessionToken),
		Retryer:     func() awssdk.Retryer { return awssdk.NopRetryer{} },
	}
}

// driver is a driver as a new process has it.
func (e *env) driver() *awsirsa.Hub {
	h := awsirsa.NewHub(e.config)
	h.Connect(e.aws, e.store)
	return h
}

// pair is the hub with the managed cluster that a name stands for.
func (e *env) pair(name string) identity.Pair {
	return identity.Pair{Hub: e.hub, Managed: awsarn.Cluster{Partition: awsarn.AWS, Region: "eu-west-1", Account: managedAccount, Name: name}}
}

// register is the annotations of the ManagedCluster whose EKS cluster a name
// stands for.
func (e *env) register(name string) map[string]string {
	p := e.pair(name)
	return map[string]string{
		identity.AnnotationCluster: p.Managed.String(),
		identity.AnnotationSuffix:  p.Identifier(),
	}
}

// addManagedRole creates the role of a managed cluster's agents.
func (e *env) addManagedRole(t *testing.T, name string) {
	t.Helper()
	role := e.pair(name).RoleOfAgents(identity.Source{Issuer: "oidc.eks.eu-west-1.amazonaws.com/id/1"}, identity.AgentAccounts("ns", "klusterlet"))
	e.addRole(t, role.ARN.String(), `{"Version":"2012-10-17","Statement":{"Effect":"Allow","Principal":"*","Action":"sts:AssumeRole"}}`, tagsOf(role.Tags))
}

func (e *env) addRole(t *testing.T, arn, trust string, tags map[string]string) {
	t.Helper()
	e.cloud.AddRole(t, aws.Role{ARN: arn, Trust: trust, Tags: tags})
}

func tagsOf(list []identity.Tag) map[string]string {
	tags := map[string]string{}
	for _, tag := range list {
		tags[tag.Key] = tag.Value
	}
	return tags
}

// plan is the plan of a ManagedCluster.
func (e *env) plan(t *testing.T, cluster, name string) driver.Grant {
	t.Helper()
	plan, err := e.driver().Plan(managedCluster(cluster, e.register(name)))
	if err != nil || plan == nil {
		t.Fatalf("plan: %v, %v", plan, err)
	}
	return *plan
}

// grant grants, and fails the test unless nothing is waited for.
func (e *env) grant(t *testing.T, plan driver.Grant) {
	t.Helper()
	progress, err := e.driver().Grant(t.Context(), plan)
	if err != nil || progress.Waiting != "" {
		t.Fatalf("grant: %+v, %v", progress, err)
	}
}

func managedCluster(name string, annotations map[string]string) *clusterv1.ManagedCluster {
	return &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations}}
}

// entry is the access entry of a grant, nil if there is none.
func (e *env) entry(plan driver.Grant) *aws.AccessEntry {
	for _, entry := range e.cloud.AccessEntries(e.hub.String()) {
		if entry.PrincipalARN == plan.Data["role"] {
			return &entry
		}
	}
	return nil
}

// others are lines of the hub's own in aws-auth, with a spelling that no encoder has.
const others = `# Nodes: do not touch!
- rolearn: "arn:aws:iam::111122223333:role/nodes"   # of the node group
  username: 'system:node:{{EC2PrivateDNSName}}'
  groups: [system:bootstrappers, system:nodes]

- groups:
  - system:masters
  rolearn: arn:aws:iam::111122223333:role/admin
  username: admin
`

func awsAuthKey() client.ObjectKey {
	return client.ObjectKey{Namespace: awsauth.Namespace, Name: awsauth.Name}
}

// ensureAWSAuth creates the ConfigMap, which all tests of this package share.
func ensureAWSAuth(t *testing.T, admin client.Client) {
	t.Helper()
	created := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: awsauth.Namespace, Name: awsauth.Name},
		Data:       map[string]string{"mapRoles": others, "mapUsers": "[]\n"},
	}
	if err := admin.Create(t.Context(), created); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}

// awsAuth is what aws-auth says, and fails the test if what is not ours changed.
func (e *env) awsAuth(t *testing.T) string {
	t.Helper()
	stored := &corev1.ConfigMap{}
	if err := e.admin.Get(t.Context(), awsAuthKey(), stored); err != nil {
		t.Fatal(err)
	}
	text := stored.Data["mapRoles"]
	if !strings.HasPrefix(text, others) || stored.Data["mapUsers"] != "[]\n" {
		t.Errorf("the lines of others are not as they were:\n%s", text)
	}
	return text
}

// editAWSAuth is another writer of aws-auth, as patient as it takes: drivers and
// other tests write the same object.
func (e *env) editAWSAuth(t *testing.T, change func(string) string) {
	t.Helper()
	await.Condition(t, patience, "aws-auth is edited", func(ctx context.Context) (bool, error) {
		stored := &corev1.ConfigMap{}
		if err := e.admin.Get(ctx, awsAuthKey(), stored); err != nil {
			return false, err
		}
		stored.Data["mapRoles"] = change(stored.Data["mapRoles"])
		err := e.admin.Update(ctx, stored)
		if apierrors.IsConflict(err) {
			return false, nil
		}
		return err == nil, err
	})
}

// line is the line of a grant in aws-auth, empty if it has none.
func (e *env) line(t *testing.T, plan driver.Grant) string {
	t.Helper()
	lines := strings.Split(e.awsAuth(t), "\n")
	at := slices.IndexFunc(lines, func(l string) bool { return strings.HasSuffix(l, " rolearn: "+plan.Data["role"]) })
	if at < 0 {
		return ""
	}
	end := at + 1
	for end < len(lines) && strings.HasPrefix(lines[end], " ") {
		end++
	}
	return strings.Join(lines[at:end], "\n")
}
