package flags_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/flags"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
)

// workload parses arguments.
func workload(t *testing.T, args ...string) (install.Workload, error) {
	t.Helper()
	var w flags.Workload
	cmd := &cobra.Command{Use: "x", RunE: func(*cobra.Command, []string) error { return nil }}
	w.AddTo(cmd)
	cmd.SetArgs(args)
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	return w.Value()
}

func TestWorkload(t *testing.T) {
	t.Parallel()
	got, err := workload(t, "--image=a/b:c", "--create-namespace=false", "--node-selector=disk=ssd",
		"--toleration=a=b:NoSchedule", "--toleration=c", "--resource-requests=cpu=5m,memory=1Mi")
	if err != nil {
		t.Fatal(err)
	}
	if got.Image != "a/b:c" || !got.KeepNamespace || got.Resources.Type != operatorv1.ResourceQosClassResourceRequirement {
		t.Errorf("got %+v", got)
	}
	want := []corev1.Toleration{
		{Key: "a", Operator: corev1.TolerationOpEqual, Value: "b", Effect: corev1.TaintEffectNoSchedule},
		{Key: "c", Operator: corev1.TolerationOpExists},
	}
	if diff := cmp.Diff(want, got.Placement.Tolerations); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if cpu := got.Resources.ResourceRequirements.Requests[corev1.ResourceCPU]; cpu.String() != "5m" {
		t.Errorf("cpu %s", cpu.String())
	}
	if zero, err := workload(t); err != nil || zero.Resources != nil || zero.Placement != nil || zero.KeepNamespace {
		t.Errorf("nothing was said: %+v, %v", zero, err)
	}
}

func TestWorkloadRefusesNonsense(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "config.json")
	if err := os.WriteFile(secret, []byte(`{"auths": {"r": {"auth": "c2VjcmV0"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"--image=https://registry/x"},
		{"--image-registry=a b"},
		{"--image-pull-credential-file=nosuch"},
		{"--image-pull-credential-file=" + secret},
		{"--resource-qos-class=BestEffort", "--resource-limits=cpu=1"},
		{"--resource-limits=cpu=-1"},
		{"--toleration=:NoSchedule"},
		{"--toleration=a:Never"},
	} {
		_, err := workload(t, args...)
		if cli.ExitCode(err) != cli.CodeUsage {
			t.Errorf("%v: %v", args, err)
		}
		if err != nil && strings.Contains(err.Error(), "c2VjcmV0") {
			t.Errorf("%v: the error shows the credential", args)
		}
	}
}

func TestGatesAreWrittenOnAndOff(t *testing.T) {
	t.Parallel()
	gates := flags.NewGates([]string{"A", "B"})
	cmd := &cobra.Command{Use: "x", RunE: func(*cobra.Command, []string) error { return nil }}
	gates.AddTo(cmd)
	cmd.SetArgs([]string{"--feature-gates=A=true,B=false"})
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	got, err := gates.Value()
	want := []operatorv1.FeatureGate{{Feature: "A", Mode: "Enable"}, {Feature: "B", Mode: "Disable"}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if !gates.Enabled("A") || gates.Enabled("B") {
		t.Error("Enabled is wrong")
	}
}

func TestFlagsWithoutMeaning(t *testing.T) {
	t.Parallel()
	var talk bytes.Buffer
	cmd := &cobra.Command{Use: "x"}
	cmd.SetErr(&talk)
	flags.AddCompat(cmd, map[string]string{"old": "it is gone"}, map[string]string{"bad": "use good"})
	if err := cmd.ParseFlags([]string{"--old", "1.2"}); err != nil {
		t.Fatal(err)
	}
	if err := cmd.PreRunE(cmd, nil); err != nil || talk.String() != "Warning: --old has no effect: it is gone\n" {
		t.Errorf("%v, %q", err, talk.String())
	}
	if err := cmd.ParseFlags([]string{"--bad=x"}); err != nil {
		t.Fatal(err)
	}
	if err := cmd.PreRunE(cmd, nil); cli.ExitCode(err) != cli.CodeUsage || !strings.Contains(err.Error(), "use good") {
		t.Errorf("error %v", err)
	}
}
