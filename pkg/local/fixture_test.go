package local_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/scheme"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/local"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
)

const (
	image    = "example.com/tests"
	patience = await.Patience
)

func options(t *testing.T, dir string, managed int) local.Options {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return local.Options{
		Dir: dir, Managed: managed, Localkube: controlplane.Localkube(t), Images: map[string]string{image: self},
		Supervisor: func(dir, cluster string) []string { return []string{self, "supervise", dir, cluster} },
		Container:  []string{self, "container"}, Clock: clock.RealClock{},
	}
}

func up(t *testing.T, o local.Options) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := local.Up(ctx, o); err != nil {
		t.Fatalf("up: %v", err)
	}
}

func status(t *testing.T, dir string) map[string]local.ClusterStatus {
	t.Helper()
	list, err := local.Status(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	statuses := map[string]local.ClusterStatus{}
	for _, s := range list {
		statuses[s.Name] = s
	}
	return statuses
}

func connect(t *testing.T, dir, cluster string) (client.Client, *rest.Config) {
	t.Helper()
	path, err := local.Kubeconfig(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: path},
		&clientcmd.ConfigOverrides{CurrentContext: cluster}).ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(config, client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	return c, config
}

func eventually(t *testing.T, what string, done wait.ConditionWithContextFunc) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, patience, true, done); err != nil {
		t.Fatalf("wait for %s: %v", what, err)
	}
}

// processes lists what runs in or on a directory: programs that work in it,
// supervisors that name it and containers whose volumes are from it.
func processes(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, entry := range entries {
		if _, err := strconv.Atoi(entry.Name()); err != nil || entry.Name() == strconv.Itoa(os.Getpid()) {
			continue
		}
		proc := filepath.Join("/proc", entry.Name())
		cwd, _ := os.Readlink(filepath.Join(proc, "cwd"))
		cmdline, _ := os.ReadFile(filepath.Join(proc, "cmdline"))
		mounts, _ := os.ReadFile(filepath.Join(proc, "mountinfo"))
		if strings.HasPrefix(cwd, dir) || bytes.Contains(cmdline, []byte(dir)) || bytes.Contains(mounts, []byte(dir)) {
			found = append(found, entry.Name()+" "+string(bytes.ReplaceAll(cmdline, []byte{0}, []byte{' '})))
		}
	}
	return found
}
