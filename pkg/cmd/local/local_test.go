//go:build linux

package local_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/local"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
)

// run runs "local ARGS" with an environment of its own.
func run(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, talk bytes.Buffer
	cmd := local.New(cli.Env{
		IOStreams: genericiooptions.IOStreams{Out: &out, ErrOut: &talk}, Name: "kubectl ocm", Clock: clock.RealClock{},
		Getenv: func(string) string { return "" },
	})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SetErr(&talk)
	err = cmd.ExecuteContext(t.Context())
	return out.String(), talk.String(), err
}

func TestErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, test := range []struct {
		args []string
		code cli.Code
		want string // in the error or in what to try
	}{
		{[]string{"status", "--dir", dir}, cli.CodeNotFound, "kubectl ocm local up"},
		{[]string{"kubeconfig", "--dir", dir}, cli.CodeNotFound, "there are no local clusters"},
		{[]string{"logs", "hub", "pod", "--dir", dir}, cli.CodeNotFound, "there are no local clusters"},
		{[]string{"logs", "hub", "--dir", dir}, cli.CodeUsage, "name either a Pod or a --component"},
		{[]string{"logs", "hub", "--component", "kubelet", "--dir", dir}, cli.CodeUsage, "supervisor, etcd, kube-apiserver"},
		{[]string{"up", "--managed", "-1", "--dir", dir}, cli.CodeUsage, "--managed must not be negative"},
		{[]string{"up", "--image", "name-only", "--dir", dir}, cli.CodeUsage, `--image must be IMAGE=FILE, not "name-only"`},
		{[]string{"up", "--localkube", dir + "/none", "--dir", dir}, cli.CodeBlocked, "make localkube"},
		{[]string{"status"}, cli.CodeBlocked, "name a directory with --dir"},
	} {
		_, _, err := run(t, test.args...)
		var explained *cli.Explained
		if !errors.As(err, &explained) {
			t.Errorf("%v: %v is not explained", test.args, err)
			continue
		}
		if code := cli.ExitCode(err); code != test.code || !strings.Contains(err.Error()+explained.Try, test.want) {
			t.Errorf("%v: code %d, %v, try %q; want code %d and %q", test.args, code, err, explained.Try, test.code, test.want)
		}
	}
}

func TestDownWithoutClusters(t *testing.T) {
	t.Parallel()
	stdout, stderr, err := run(t, "down", "--dir", t.TempDir())
	if err != nil || stdout != "" || !strings.Contains(stderr, "There are no local clusters in ") {
		t.Errorf("stdout %q, stderr %q, %v", stdout, stderr, err)
	}
}

// must runs a command that has to succeed and returns what it printed.
func must(t *testing.T, args ...string) string {
	t.Helper()
	stdout, stderr, err := run(t, args...)
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, stderr)
	}
	return stdout
}

func TestCommands(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "clusters")
	flag := "--dir=" + dir
	t.Cleanup(func() {
		if _, _, err := run(t, "down", flag); err != nil {
			t.Error(err)
		}
	})
	first := must(t, "up", "--managed=0", "--localkube="+controlplane.Localkube(t), flag)
	if !regexp.MustCompile(`^hub  running  https://127\.0\.0\.1:\d+\n$`).MatchString(first) {
		t.Errorf("up prints %q", first)
	}
	if again := must(t, "up", "--managed=0", "--localkube="+controlplane.Localkube(t), flag); again != first {
		t.Errorf("up again prints %q, first %q", again, first)
	}
	if got := must(t, "status", "-o", "name", flag); got != "cluster/hub\n" {
		t.Errorf("status -o name prints %q", got)
	}
	table := regexp.MustCompile(`^NAME +STATUS +PODS +RESTARTS +AGE +SERVER +MESSAGE\nhub +Running +0/0 +0 +\S+ +https://\S+ +-\n$`)
	if got := must(t, "status", flag); !table.MatchString(got) {
		t.Errorf("status prints\n%s", got)
	}
	var list struct {
		Kind  string
		Items []struct{ Name, Phase, URL string }
	}
	if err := json.Unmarshal([]byte(must(t, "status", "-o", "json", flag)), &list); err != nil {
		t.Fatal(err)
	}
	if list.Kind != "LocalClusterList" || len(list.Items) != 1 || list.Items[0].Phase != "Running" {
		t.Errorf("status -o json is %+v", list)
	}
	path := filepath.Join(dir, "kubeconfig")
	if got := must(t, "kubeconfig", "--path", flag); got != path+"\n" {
		t.Errorf("kubeconfig --path prints %q", got)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := must(t, "kubeconfig", flag); got != string(content) || !strings.Contains(got, "current-context: hub") {
		t.Errorf("kubeconfig prints %q", got)
	}
	if got := must(t, "kubeconfig", "hub", flag); !strings.Contains(got, list.Items[0].URL) {
		t.Errorf("kubeconfig hub prints %q", got)
	}
	if got := must(t, "logs", "hub", "--component=kube-apiserver", flag); !strings.Contains(got, "Version: v1.") {
		t.Errorf("the API server's log is %q", got)
	}
	if got := must(t, "logs", "hub", "--component=kube-apiserver", "--tail=2", flag); strings.Count(got, "\n") != 2 {
		t.Errorf("the last two lines of the API server's log are %q", got)
	}
	if _, _, err := run(t, "logs", "hub", "--component=kube-apiserver", "--follow", flag); cli.ExitCode(err) != cli.CodeUsage {
		t.Errorf("a component's log is followed: %v", err)
	}
	if _, _, err := run(t, "logs", "hub", "nothing", flag); err == nil || !strings.Contains(err.Error(), "no pod is called nothing") {
		t.Errorf("logs of a Pod that is not there: %v", err)
	}
	if _, _, err := run(t, "kubeconfig", "cluster7", flag); cli.ExitCode(err) != cli.CodeNotFound {
		t.Errorf("kubeconfig of a cluster that is not there: %v", err)
	}
	if got := must(t, "down", flag); got != "cluster/hub removed\n" {
		t.Errorf("down prints %q", got)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory is still there: %v", err)
	}
}
