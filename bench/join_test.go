package bench_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// auditPolicy has the API server record every write that it carried out.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  verbs: [create, update, patch, delete, deletecollection]
`

// fleet is a hub and managed clusters that log their writes.
type fleet struct{ dir, kubeconfig string }

func (f *fleet) run(b *testing.B, args ...string) {
	b.Helper()
	cmd := exec.CommandContext(b.Context(), binary, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+f.kubeconfig)
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// start brings up a fleet and returns how long that took.
func (f *fleet) start(b *testing.B, managed int, args ...string) time.Duration {
	b.Helper()
	f.dir = b.TempDir()
	b.Cleanup(func() {
		_ = exec.Command(binary, "local", "down", "--dir", f.dir).Run() //nolint:noctx // the benchmark's context has ended
	})
	began := now.Now()
	f.run(b, append([]string{"local", "up", "--dir", f.dir, "--managed", strconv.Itoa(managed)}, args...)...)
	took := now.Since(began)
	f.kubeconfig = filepath.Join(f.dir, "kubeconfig")
	return took
}

// BenchmarkLocalUp measures how long "local up" takes for a hub and two managed
// clusters, all ready for Pods, with binaries built.
func BenchmarkLocalUp(b *testing.B) {
	var took time.Duration
	for b.Loop() {
		var f fleet
		took += f.start(b, 2)
		f.run(b, "local", "down", "--dir", f.dir)
	}
	b.ReportMetric(took.Seconds()/float64(b.N), "s/up")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkJoin counts what one cluster writes to the hub, and has written there
// for it, from its first request to Available. Not counted are leases of leader
// election and what Kubernetes itself puts into every new namespace.
func BenchmarkJoin(b *testing.B) {
	var f fleet
	policy := filepath.Join(b.TempDir(), "policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		b.Fatal(err)
	}
	f.start(b, 2, "--apiserver-arg", "--audit-policy-file="+policy, "--apiserver-arg", "--audit-log-path=audit.log")
	f.run(b, "init", "--context", "hub", "--wait")
	// The first cluster of a hub also brings the ClusterRoles that all share.
	f.join(b, "cluster1")
	var writes []auditEvent
	for b.Loop() {
		began := now.Now()
		f.join(b, "cluster2")
		writes = f.writes(b, began, "cluster2")
	}
	by := map[string]int{}
	for _, w := range writes {
		by[w.writer()]++
		b.Logf("%-11s %s", w.writer(), w.describe())
	}
	b.ReportMetric(float64(len(writes)), "all-writes/cluster")
	for writer, n := range by {
		b.ReportMetric(float64(n), writer+"-writes/cluster")
	}
	b.ReportMetric(0, "ns/op")
}

// join joins a cluster and waits until it is available.
func (f *fleet) join(b *testing.B, name string) {
	b.Helper()
	f.run(b, "join", "--hub-context", "hub", "--context", name, "--cluster-name", name, "--wait")
	kubectl := exec.CommandContext(b.Context(), "../bin/kubectl", "--kubeconfig", f.kubeconfig, "--context", "hub",
		"wait", "managedcluster", name, "--for=condition=ManagedClusterConditionAvailable", "--timeout=120s")
	if out, err := kubectl.CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
}

// auditEvent is what of an audit event is looked at.
type auditEvent struct {
	RequestURI     string
	Verb           string
	StageTimestamp time.Time
	User           struct{ Username string }
	ObjectRef      struct{ Resource, Subresource, Namespace, Name string }
	ResponseStatus struct{ Code int }
}

// writes are the hub's writes since a time that are for one cluster.
func (f *fleet) writes(b *testing.B, since time.Time, cluster string) []auditEvent {
	b.Helper()
	log, err := os.Open(filepath.Join(f.dir, "clusters", "hub", "control-plane", "audit.log"))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	var writes []auditEvent
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var event auditEvent
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			b.Fatal(err)
		}
		if event.StageTimestamp.After(since) && event.counts(cluster) {
			writes = append(writes, event)
		}
	}
	return writes
}

// counts reports whether an event is a write that changed the hub for a cluster.
func (e auditEvent) counts(cluster string) bool {
	ref := e.ObjectRef
	switch {
	case e.ResponseStatus.Code >= 400:
		return false
	case ref.Resource == "leases" && ref.Namespace != cluster:
		return false // leader election
	case strings.HasSuffix(ref.Resource, "reviews") || ref.Subresource == "token":
		return false // a question, or a token: nothing is stored
	case ref.Namespace == cluster && (ref.Resource == "serviceaccounts" || ref.Resource == "configmaps"):
		return false // Kubernetes' own, in every namespace
	}
	return ref.Namespace == cluster || strings.Contains(ref.Name, cluster)
}

func (e auditEvent) writer() string {
	user := e.User.Username
	switch {
	case strings.HasSuffix(user, ":registration-controller-sa"):
		return "hub"
	case strings.HasSuffix(user, ":agent-registration-bootstrap"), strings.HasPrefix(user, "system:open-cluster-management:"):
		return "agent"
	case strings.HasPrefix(user, "system:serviceaccount:kube-system:"), user == "system:kube-controller-manager":
		return "kubernetes"
	}
	return "command"
}

func (e auditEvent) describe() string {
	ref := e.ObjectRef
	resource := ref.Resource
	if ref.Subresource != "" {
		resource += "/" + ref.Subresource
	}
	return fmt.Sprintf("%s %s %s/%s", e.Verb, resource, ref.Namespace, ref.Name)
}
