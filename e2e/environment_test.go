package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/scheme"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
)

// patience bounds every wait. It is far more than anything takes, because a
// busy machine must not make a test fail.
const patience = await.Patience

// environment is where the suite runs.
type environment struct {
	// kubeconfig has the contexts hub, cluster1 and cluster2.
	kubeconfig string
	// dir holds local clusters; empty on kind.
	dir string
	// host is where Pods on kind reach what a test serves; empty for local clusters,
	// whose Pods have the network of the tests.
	host string
	// variables are what commands find in their environment besides.
	variables []string
}

// result is what a run of the command left.
type result struct {
	stdout, stderr string
	code           int
}

func (r result) String() string {
	return fmt.Sprintf("exit code %d\nstdout:\n%s\nstderr:\n%s", r.code, r.stdout, r.stderr)
}

// binary is the command under test.
func binary() string { return built("kubectl-ocm") }

// sampleBinary is the sample add-on.
func sampleBinary() string { return built("heartbeat-addon") }

// built is a program that make built.
func built(name string) string {
	path, err := filepath.Abs(filepath.Join("../bin", name))
	if err != nil {
		panic(err)
	}
	return path
}

// run runs the command.
func run(ctx context.Context, kubeconfig string, stdin []byte, args ...string) (result, error) {
	return runWith(ctx, []string{"KUBECONFIG=" + kubeconfig}, stdin, args...)
}

// runWith runs the command with variables in its environment.
func runWith(ctx context.Context, variables []string, stdin []byte, args ...string) (result, error) {
	cmd := exec.CommandContext(ctx, binary(), args...)
	cmd.Stdin = bytes.NewReader(stdin)
	cmd.Env = append(os.Environ(), variables...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return result{}, err
	}
	return result{stdout: stdout.String(), stderr: stderr.String(), code: cmd.ProcessState.ExitCode()}, nil
}

// ocm runs the command and returns how it ended.
func (e *environment) ocm(t *testing.T, args ...string) result {
	t.Helper()
	r, err := runWith(t.Context(), append(e.variables, "KUBECONFIG="+e.kubeconfig), nil, args...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// must runs the command, which has to succeed, and returns what it printed.
func (e *environment) must(t *testing.T, args ...string) string {
	t.Helper()
	r := e.ocm(t, args...)
	if r.code != 0 {
		t.Fatalf("kubectl ocm %s: %v", strings.Join(args, " "), r)
	}
	return r.stdout
}

// leave removes the agent from a managed cluster at the end of the test, also of one that
// failed half-way: others join that cluster as well.
func (e *environment) leave(t *testing.T, contextName, cluster string) {
	t.Helper()
	t.Cleanup(func() {
		r, err := run(context.WithoutCancel(t.Context()), e.kubeconfig, nil,
			"unjoin", "--yes", "--context", contextName, "--cluster-name", cluster, "--hub-context", "hub", "--force", "--wait")
		if err != nil || r.code != 0 && r.code != codeNotFound {
			t.Errorf("removing the agent: %v %v", err, r)
		}
	})
}

// codeNotFound is the exit code of a command that finds nothing to work on.
const codeNotFound = 4

// agentConfig is the connection to the hub that a managed cluster's agent has,
// from the Secret that the agent keeps.
func (e *environment) agentConfig(t *testing.T, cluster string) *rest.Config {
	t.Helper()
	var secret corev1.Secret
	key := client.ObjectKey{Namespace: names.AgentNamespace, Name: names.HubKubeconfigSecret}
	if err := e.client(t, cluster).Get(t.Context(), key, &secret); err != nil {
		t.Fatal(err)
	}
	hub := e.config(t, "hub")
	return &rest.Config{
		Host: hub.Host, QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{
			CAData:   hub.CAData,
			CertData: secret.Data[names.KeyTLSCert],
			KeyData:  secret.Data[names.KeyTLSKey],
		},
	}
}

// config is the administrator's connection to a cluster.
func (e *environment) config(t *testing.T, contextName string) *rest.Config {
	t.Helper()
	config, err := e.load(contextName)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// load reads the administrator's connection to a cluster.
func (e *environment) load(contextName string) (*rest.Config, error) {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: e.kubeconfig},
		&clientcmd.ConfigOverrides{CurrentContext: contextName}).ClientConfig()
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	return config, nil
}

// connect is an administrator's client of a cluster, outside of a test.
func (e *environment) connect(contextName string) (client.Client, error) {
	config, err := e.load(contextName)
	if err != nil {
		return nil, err
	}
	return client.New(config, client.Options{Scheme: scheme.New()})
}

// needs skips a test where kind has fewer clusters than it takes.
func (e *environment) needs(t *testing.T, contexts ...string) {
	t.Helper()
	config, err := clientcmd.LoadFromFile(e.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range contexts {
		if config.Contexts[name] == nil && e.dir == "" {
			t.Skipf("there is no %s; CLUSTERS says how many clusters kind creates", name)
		}
	}
}

// client is an administrator's client of a cluster.
func (e *environment) client(t *testing.T, contextName string) client.Client {
	t.Helper()
	return newClient(t, e.config(t, contextName))
}

func newClient(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	c, err := client.New(config, client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// eventually repeats check until it returns nil, and fails the test with its
// last error when patience is at its end.
func eventually(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		err := check(ctx)
		if last == nil || ctx.Err() == nil { // That patience is at its end says less than what was seen before.
			last = err
		}
		return err == nil, nil
	})
	if err != nil {
		t.Fatalf("%s: not within %v: %v", what, patience, last)
	}
}

// kubectlPath is the kubectl that was built beside localkube, or the user's own.
func kubectlPath() string {
	path, err := filepath.Abs("../bin/kubectl")
	if err == nil {
		if _, err = os.Stat(path); err == nil {
			return path
		}
	}
	return "kubectl"
}

// impersonate is a client of the hub as a user without any groups but the one
// of all authenticated users.
func impersonate(t *testing.T, user string) client.Client {
	t.Helper()
	config := fleet.config(t, "hub")
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	return newClient(t, config)
}

// grant gives a user rules on the whole hub until the end of the test.
func grant(t *testing.T, hub client.Client, user string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	meta := metav1.ObjectMeta{Name: user}
	for _, obj := range []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: meta,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
		},
	} {
		if err := hub.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = hub.Delete(context.WithoutCancel(t.Context()), obj) })
	}
}

// writeFile returns a file with data that only this test reads.
func writeFile(t *testing.T, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// keptLogs is where the logs of the clusters of a run that failed are kept until the
// next one that fails.
const keptLogs = "../bin/e2e-logs"

// keepLogs copies what API servers, nodes and containers logged. On kind, the clusters
// stay with KEEP=1.
func (e *environment) keepLogs() error {
	if e.dir == "" {
		return nil
	}
	if err := os.RemoveAll(keptLogs); err != nil {
		return err
	}
	clusters := os.DirFS(e.dir)
	err := fs.WalkDir(clusters, ".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".log" {
			return err
		}
		log, err := fs.ReadFile(clusters, path)
		if err != nil {
			return err
		}
		kept := filepath.Join(keptLogs, path)
		return errors.Join(os.MkdirAll(filepath.Dir(kept), 0o700), os.WriteFile(kept, log, 0o600))
	})
	if err == nil {
		fmt.Fprintln(os.Stderr, "the logs of the clusters are in", keptLogs)
	}
	return err
}
