package measure

import (
	"bufio"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"
)

// Audit is the API server's own record of who requested what.
type Audit struct {
	policy, log string
}

// Requests are numbers of requests.
type Requests struct {
	Writes, Reads int
}

const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: None
  resources: [{group: authorization.k8s.io}, {group: authentication.k8s.io}]
- level: Metadata
  resources: [{group: ""}, {group: apps}, {group: rbac.authorization.k8s.io}, {group: certificates.k8s.io}, {group: coordination.k8s.io}, {group: events.k8s.io}, {group: cluster.open-cluster-management.io}, {group: addon.open-cluster-management.io}, {group: work.open-cluster-management.io}]
- level: Metadata
  verbs: [create, update, patch, delete, deletecollection]
- level: None
`

// NewAudit prepares the record of an API server that is started with its Args.
func NewAudit(b *testing.B) Audit {
	b.Helper()
	a := Audit{policy: filepath.Join(b.TempDir(), "policy.yaml"), log: filepath.Join(b.TempDir(), "audit.log")}
	if err := os.WriteFile(a.policy, []byte(auditPolicy), 0o600); err != nil {
		b.Fatal(err)
	}
	return a
}

// Args are the API server's arguments.
func (a Audit) Args() []string {
	return []string{"--audit-policy-file=" + a.policy, "--audit-log-path=" + a.log, "--audit-log-mode=batch", "--audit-log-batch-max-wait=1s", "--audit-log-maxsize=10000"}
}

// entry is what is looked at of a request.
type entry struct {
	Verb      string
	User      struct{ Username string }
	ObjectRef struct{ Resource, Subresource, Namespace, Name string }
}

// reads reports whether a request changes nothing.
func (e entry) reads() bool { return slices.Contains([]string{"get", "list", "watch"}, e.Verb) }

// Requests counts the requests so far by user. What leader election does is not
// counted.
func (a Audit) Requests(b *testing.B) map[string]Requests {
	b.Helper()
	counts := map[string]Requests{}
	a.each(b, func(e entry) {
		count := counts[e.User.Username]
		if e.reads() {
			count.Reads++
		} else {
			count.Writes++
		}
		counts[e.User.Username] = count
	})
	return counts
}

// Kinds counts the requests of a user so far by verb and resource, such as
// "create serviceaccounts/token".
func (a Audit) Kinds(b *testing.B, user string) map[string]int {
	b.Helper()
	counts := map[string]int{}
	a.each(b, func(e entry) {
		if e.User.Username == user {
			counts[e.Verb+" "+strings.TrimSuffix(e.ObjectRef.Resource+"/"+e.ObjectRef.Subresource, "/")]++
		}
	})
	return counts
}

// each looks at all requests so far but those of leader election.
func (a Audit) each(b *testing.B, look func(entry)) {
	b.Helper()
	clock.RealClock{}.Sleep(2 * time.Second) // The log is written in batches.
	file, err := os.Open(a.log)
	if errors.Is(err, fs.ErrNotExist) {
		return
	} else if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e entry
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			continue // The last line may be half written.
		}
		if ref := e.ObjectRef; ref.Resource == "leases" && !strings.HasPrefix(ref.Namespace, "cluster") {
			continue
		}
		look(e)
	}
}

// Difference is what came to before until after.
func Difference(after, before map[string]Requests) map[string]Requests {
	diff := map[string]Requests{}
	for user, n := range after {
		d := Requests{Writes: n.Writes - before[user].Writes, Reads: n.Reads - before[user].Reads}
		if d != (Requests{}) {
			diff[user] = d
		}
	}
	return diff
}
