package drivertest

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/kubeconfig"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// patience is how long a hub may take for what it does by itself, and pace how
// often it is looked at.
const (
	patience = time.Minute
	pace     = 50 * time.Millisecond
)

// maxSteps is far more than a driver needs to say that it waits.
const maxSteps = 20

// AgentSuite is a driver with a hub to test it at.
type AgentSuite struct {
	// New returns a driver as a new process would make it. Every subtest takes
	// its own identity.
	New func(driver.Identity) driver.Agent
	// Hub is a client with the rights of a joining agent.
	Hub client.WithWatch
	// Address leads to the hub.
	Address kubeconfig.Hub
	// User is who an identity is on the hub.
	User func(driver.Identity) string
	// Grant does on the hub what makes it issue what the identity asked for.
	Grant func(t *testing.T, id driver.Identity)
	// Refuse does on the hub what refuses what the identity asked for.
	Refuse func(t *testing.T, id driver.Identity)
}

// RunAgent runs the suite.
func RunAgent(t *testing.T, s AgentSuite) {
	t.Helper()
	for name, check := range map[string]func(*testing.T, AgentSuite, driver.Identity){
		"decorating adds the agent's annotations and nothing else": decorates,
		"invalid credentials are distinguished":                    distinguishesProblems,
		"nothing is written before there is something to resume":   storesFirst,
		"any number of restarts asks once":                         asksOnce,
		"what is issued is a credential of the identity":           issues,
		"what is issued is issued again after a crash":             issuesAgain,
		"a connection presents what is stored":                     connects,
		"a denial is reported and respected":                       refuses,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			id := driver.Identity{Cluster: "conform-" + strings.ToLower(strings.NewReplacer(" ", "-", "'", "").Replace(name)), Agent: "agent1"}
			id.Cluster = strings.TrimRight(id.Cluster[:min(len(id.Cluster), 40)], "-")
			check(t, s, id)
		})
	}
}

// run is an agent whose process may be replaced at any time.
type run struct {
	requests

	suite   AgentSuite
	id      driver.Identity
	agent   driver.Agent
	pending driver.Data
	hub     client.WithWatch
}

func newRun(s AgentSuite, id driver.Identity) *run {
	r := &run{suite: s, id: id, agent: s.New(id)}
	r.hub = r.counting(s.Hub)
	return r
}

// stored is the Secret that an agent keeps an issued credential in.
func (r *run) stored(t *testing.T, issued *driver.Issued) driver.Data {
	t.Helper()
	data, err := driver.SecretData(r.suite.Address, r.id, r.agent.User(), issued.Data)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// restart replaces the process: only the pending data survive.
func (r *run) restart() { r.agent = r.suite.New(r.id) }

func (r *run) step(t *testing.T) driver.Step {
	t.Helper()
	step, err := r.agent.Obtain(t.Context(), r.hub, maps.Clone(r.pending))
	if err != nil {
		t.Fatalf("step: %v", err)
	}
	r.pending = step.Pending
	return step
}

// untilWaiting takes steps until one waits or issues a credential.
func (r *run) untilWaiting(t *testing.T) driver.Step {
	t.Helper()
	for range maxSteps {
		if step := r.step(t); !step.Again {
			if step.Issued == nil && (step.Waiting.Reason == "" || step.Waiting.Message == "") {
				t.Fatalf("it waits without words: %+v", step.Waiting)
			}
			return step
		}
	}
	t.Fatalf("%d steps and no end", maxSteps)
	return driver.Step{}
}

func (r *run) untilIssued(t *testing.T) *driver.Issued {
	t.Helper()
	step := r.untilWaiting(t)
	for range int(patience / pace) {
		if step.Issued != nil {
			return step.Issued
		}
		clock.RealClock{}.Sleep(pace)
		step = r.untilWaiting(t)
	}
	t.Fatalf("nothing was issued, it waits for %+v", step.Waiting)
	return nil
}

func decorates(t *testing.T, s AgentSuite, id driver.Identity) {
	t.Helper()
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: id.Cluster, Annotations: map[string]string{"mine": "x"}}}
	s.New(id).Decorate(cluster)
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

func distinguishesProblems(t *testing.T, s AgentSuite, id driver.Identity) {
	t.Helper()
	if _, err := s.New(id).Inspect(nil); !errors.Is(err, credential.ErrMissing) {
		t.Errorf("nothing at all: got %v, want it to be missing", err)
	}
	r := newRun(s, id)
	r.untilWaiting(t)
	s.Grant(t, id)
	issued := r.untilIssued(t)
	stranger := driver.Identity{Cluster: id.Cluster + "2", Agent: id.Agent}
	if _, err := s.New(stranger).Inspect(r.stored(t, issued)); !errors.Is(err, credential.ErrWrongIdentity) {
		t.Errorf("another cluster's: got %v, want it to be of the wrong identity", err)
	}
	for key := range issued.Data {
		broken := r.stored(t, issued)
		broken[key] = []byte("broken")
		if _, err := s.New(id).Inspect(broken); err == nil {
			t.Errorf("a broken %s was not found", key)
		}
	}
}

func storesFirst(t *testing.T, s AgentSuite, id driver.Identity) {
	t.Helper()
	r := newRun(s, id)
	for range maxSteps {
		before, writes := r.pending, r.writes.Load()
		step := r.step(t)
		if r.writes.Load() > writes && len(before) == 0 {
			t.Fatal("it wrote on the hub with nothing stored that could find it again")
		}
		if !step.Again {
			return
		}
	}
}

func asksOnce(t *testing.T, s AgentSuite, id driver.Identity) {
	t.Helper()
	r := newRun(s, id)
	for range maxSteps {
		r.step(t)
		r.restart()
	}
	// A process that stopped between a write and storing what came of it takes
	// the same step again.
	stored := maps.Clone(r.pending)
	for range maxSteps {
		r.pending = maps.Clone(stored)
		r.step(t)
		r.restart()
	}
	if got := r.writes.Load(); got > 1 {
		t.Errorf("it wrote %d times on the hub, want once at most", got)
	}
}

func issues(t *testing.T, s AgentSuite, id driver.Identity) {
	t.Helper()
	r := newRun(s, id)
	if step := r.untilWaiting(t); step.Watch == nil && step.After == 0 {
		t.Error("it waits without saying for what")
	}
	s.Grant(t, id)
	issued := r.untilIssued(t)
	validity, err := r.agent.Inspect(r.stored(t, issued))
	if err != nil {
		t.Fatalf("it does not recognise what it brought: %v", err)
	}
	if !validity.NotAfter.Equal(issued.Validity.NotAfter) || validity.Unlimited != issued.Validity.Unlimited || !validity.Unlimited && validity.Lifetime() <= 0 {
		t.Errorf("it is good %+v, inspected %+v", issued.Validity, validity)
	}
	checkUser(t, r.agent.User(), issued)
	checkReport(t, r.agent.Report(), issued.Validity)
}

// checkReport checks that the credential can be reported in words.
func checkReport(t *testing.T, report driver.Report, v credential.Validity) {
	t.Helper()
	if report.Event == "" {
		t.Error("no event records that it was issued")
	}
	if len(report.Conditions) == 0 {
		return
	}
	for _, words := range []driver.Waiting{report.Valid(v), report.Failed(driver.Waiting{Reason: "Why", Message: "because"})} {
		if words.Reason == "" || words.Message == "" {
			t.Errorf("a condition without words: %+v", words)
		}
	}
}

// checkUser checks that the kubeconfig names files that exist.
func checkUser(t *testing.T, user clientcmdapi.AuthInfo, issued *driver.Issued) {
	t.Helper()
	if len(user.ClientKeyData) > 0 || len(user.ClientCertificateData) > 0 || user.Token != "" || user.Password != "" {
		t.Error("the kubeconfig would hold the secret itself and not a file name")
	}
	for _, file := range []string{user.ClientCertificate, user.ClientKey, user.TokenFile} {
		if file != "" && len(issued.Data[file]) == 0 {
			t.Errorf("the kubeconfig would name a file %q that is not there", file)
		}
	}
}

func issuesAgain(t *testing.T, s AgentSuite, id driver.Identity) {
	t.Helper()
	r := newRun(s, id)
	stored := r.untilWaiting(t).Pending
	s.Grant(t, id)
	first := r.untilIssued(t)
	r.restart()
	r.pending = stored
	second := r.untilIssued(t)
	for key, value := range first.Data {
		if string(second.Data[key]) != string(value) {
			t.Errorf("after a crash %s is another one", key)
		}
	}
}

func connects(t *testing.T, s AgentSuite, id driver.Identity) {
	t.Helper()
	r := newRun(s, id)
	r.untilWaiting(t)
	s.Grant(t, id)
	stored := r.stored(t, r.untilIssued(t))
	if one, other := s.New(id).Fingerprint(stored), r.agent.Fingerprint(stored); one == "" || one != other || r.agent.Fingerprint(nil) != "" {
		t.Errorf("the credential is %q, to another process %q, and none is %q", one, other, r.agent.Fingerprint(nil))
	}
	conn, err := r.agent.Open(s.Address, "", stored)
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
		if got := whoAmI(t, hub); got != s.User(id) {
			t.Errorf("it is %q on the hub, want %q", got, s.User(id))
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

func refuses(t *testing.T, s AgentSuite, id driver.Identity) {
	t.Helper()
	r := newRun(s, id)
	r.untilWaiting(t)
	writes := r.writes.Load()
	s.Refuse(t, id)
	step := r.untilWaiting(t)
	if !step.Failing || step.Issued != nil || step.After <= 0 {
		t.Fatalf("refused, it says %+v and comes again after %v", step.Waiting, step.After)
	}
	for range maxSteps {
		r.restart()
		r.untilWaiting(t)
	}
	if got := r.writes.Load(); got != writes {
		t.Errorf("it wrote %d times after the denial", got-writes)
	}
}
