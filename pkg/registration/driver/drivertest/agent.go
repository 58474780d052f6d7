package drivertest

import (
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/kubeconfig"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// AgentSuite is a driver with a hub to test it at.
type AgentSuite struct {
	// New returns a driver as a new process would make it. Every subtest takes
	// its own identity.
	New func(driver.Identity) driver.Agent
	// Hub is the connection of a joining agent.
	Hub *rest.Config
	// Address is the address of the hub.
	Address kubeconfig.Hub
	// User returns the hub's user for an identity.
	User func(driver.Identity) string
	// Grant makes the hub issue the credential that the identity requested.
	Grant func(t *testing.T, id driver.Identity)
	// Refuse does on the hub what refuses what the identity asked for.
	Refuse func(t *testing.T, id driver.Identity)
}

// RunAgent runs the suite.
func RunAgent(t *testing.T, s AgentSuite) {
	t.Helper()
	for name, check := range map[string]func(*testing.T, *agentRun){
		"decorating adds the agent's annotations and nothing else": decorates,
		"invalid credentials are distinguished":                    ofRun[*agentRun](distinguishesProblems),
		"nothing is written before there is something to resume":   ofRun[*agentRun](storesFirst),
		"any number of restarts asks once":                         ofRun[*agentRun](asksOnce),
		"what is issued is a credential of the identity":           ofRun[*agentRun](issues),
		"what is issued is issued again after a crash":             issuesTheSame,
		"a connection presents what is stored":                     connects,
		"a denial is reported and respected":                       triesAgain,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			id := driver.Identity{Cluster: "conform-" + strings.ToLower(strings.NewReplacer(" ", "-", "'", "").Replace(name)), Agent: "agent1"}
			id.Cluster = strings.TrimRight(id.Cluster[:min(len(id.Cluster), 40)], "-")
			check(t, newAgentRun(t, s, id))
		})
	}
}

// agentRun is a run of a cluster's agent.
type agentRun struct {
	run

	suite AgentSuite
	id    driver.Identity
}

func newAgentRun(t *testing.T, s AgentSuite, id driver.Identity) *agentRun {
	t.Helper()
	r := &agentRun{suite: s, id: id}
	r.begin = func() driver.Credential { return s.New(id) }
	r.stranger = func() driver.Credential { return s.New(driver.Identity{Cluster: id.Cluster + "2", Agent: id.Agent}) }
	r.grant = func(t *testing.T) { t.Helper(); s.Grant(t, id) }
	r.refuse = func(t *testing.T) { t.Helper(); s.Refuse(t, id) }
	r.stored = func(t *testing.T, issued *driver.Issued) driver.Data {
		t.Helper()
		data, err := driver.SecretData(s.Address, id, r.credential.User(), issued.Data)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	r.connect(t, s.Hub)
	return r
}

func decorates(t *testing.T, r *agentRun) {
	t.Helper()
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: r.id.Cluster, Annotations: map[string]string{"mine": "x"}}}
	r.suite.New(r.id).Decorate(cluster)
	if len(cluster.Labels) > 0 || len(cluster.Spec.Taints) > 0 || cluster.Spec.HubAcceptsClient || len(cluster.Finalizers) > 0 {
		t.Errorf("it decorated with more than annotations: %+v", cluster)
	}
	for key := range cluster.Annotations {
		if key != "mine" && !strings.HasPrefix(key, names.AnnotationAgentPrefix) {
			t.Errorf("it decorated with annotation %s", key)
		}
	}
	if cluster.Annotations["mine"] != "x" {
		t.Error("it lost an annotation")
	}
}

// issuesTheSame: after a crash, the driver issues the same credential as before.
func issuesTheSame(t *testing.T, r *agentRun) {
	t.Helper()
	first, second := issuesAgain(t, &r.run)
	for key, value := range first.Data {
		if string(second.Data[key]) != string(value) {
			t.Errorf("after a crash %s is another one", key)
		}
	}
}

// triesAgain: a denied agent retries by itself.
func triesAgain(t *testing.T, r *agentRun) {
	t.Helper()
	if step := refused(t, &r.run); step.After <= 0 {
		t.Errorf("refused, it says %+v and comes again after %v", step.Waiting, step.After)
	}
}

func connects(t *testing.T, r *agentRun) {
	t.Helper()
	stored := r.stored(t, r.obtain(t))
	agent := r.suite.New(r.id)
	if one, other := r.suite.New(r.id).Fingerprint(stored), agent.Fingerprint(stored); one == "" || one != other || agent.Fingerprint(nil) != "" {
		t.Errorf("the credential is %q, to another process %q, and none is %q", one, other, agent.Fingerprint(nil))
	}
	conn, err := agent.Open(r.suite.Address, "", stored)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(conn.Close)
	hub, err := client.New(conn.Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range []func() error{
		func() error { return nil },
		func() error { return conn.Reload(stored) },
		func() error { conn.Reset(); return nil },
	} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
		if got := whoAmI(t, hub); got != r.suite.User(r.id) {
			t.Errorf("it is %q on the hub, want %q", got, r.suite.User(r.id))
		}
	}
}

// whoAmI returns the user name of a client. A request under way when a connection
// is closed fails, and is repeated.
func whoAmI(t *testing.T, hub client.Client) string {
	t.Helper()
	var err error
	for range int(patience / pace) {
		self := &authenticationv1.SelfSubjectReview{}
		if err = hub.Create(t.Context(), self); err == nil {
			return self.Status.UserInfo.Username
		}
		clock.RealClock{}.Sleep(pace)
	}
	t.Fatalf("the hub does not know the credential: %v", err)
	return ""
}
