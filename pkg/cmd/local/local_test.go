package local_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/local"
)

// run runs "local ARGS" with an environment of its own.
func run(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, talk bytes.Buffer
	cmd := local.New(cli.Env{
		Streams: cli.Streams{Out: &out, Err: &talk}, Name: "kubectl ocm", Clock: clock.RealClock{},
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
