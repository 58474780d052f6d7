//go:build linux

package cmd_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/upstream"
)

// blocked is the exit code of what stands in the way.
const blocked = 3

// ran is how a call of the command ended.
type ran struct {
	out, err string
	code     int
}

// kubeconfig writes the administrator's kubeconfig of a control plane.
func kubeconfig(t *testing.T, cp *controlplane.ControlPlane) string {
	t.Helper()
	return file(t, cp.Kubeconfig(t, "local"))
}

func file(t *testing.T, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// ocm runs the command as a user without a terminal does.
func ocm(t *testing.T, args ...string) ran {
	t.Helper()
	var out, talk bytes.Buffer
	code := cmd.Execute(t.Context(), cmd.Env{
		IOStreams: genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &talk}, Name: "kubectl ocm", Clock: clock.RealClock{},
		Getenv: func(string) string { return "" },
	}, args)
	return ran{out.String(), talk.String(), int(code)}
}

// TestOthersHub runs the commands of an administrator against a hub that
// clusteradm has made.
func TestOthersHub(t *testing.T) {
	t.Parallel()
	cp := controlplane.Lease(t)
	admin := cp.Client(t)
	upstream.Hub(t, admin)
	config := kubeconfig(t, cp)
	for _, args := range [][]string{
		{"init"}, {"init", "--force"}, {"init", "--dry-run=server"}, {"init", "--skip-check=other-product", "--image=example/kubectl-ocm:v1"},
	} {
		r := ocm(t, append(args, "--kubeconfig="+config, "--allow-loopback")...)
		if r.code != blocked || !strings.Contains(r.err, upstream.OperatorImage) {
			t.Errorf("%v: exit code %d: %s", args, r.code, r.err)
		}
	}
	for _, args := range [][]string{{"check", "hub", "--self-test=false"}, {"check", "tokens"}} {
		r := ocm(t, append(args, "--kubeconfig="+config)...)
		expectNoAdvice(t, r, "init", "join", "clean")
		if args[1] == "hub" && !strings.Contains(r.out, upstream.OperatorImage) {
			t.Errorf("it does not say whose the hub is: %s", r.out)
		}
	}
}

// TestOthersAreNamed: version and the info commands say that an installation is OCM's, and
// which release of OCM, and advise against nothing.
func TestOthersAreNamed(t *testing.T) {
	t.Parallel()
	cp := controlplane.Lease(t)
	admin := cp.Client(t)
	upstream.Hub(t, admin)
	upstream.Klusterlet(t, admin, "cluster1")
	config := kubeconfig(t, cp)
	for _, tc := range []struct {
		args  []string
		parts []string
	}{
		{[]string{"version"}, []string{"Hub: v1.3.1 of OCM", "Agent: v1.3.1 of OCM"}},
		{[]string{"version", "-o=json"}, []string{`"product": "OCM"`, `"version": "v1.3.1"`}},
		{[]string{"get", "hub-info"}, []string{"Product: OCM v1.3.1", upstream.OperatorImage, "open-cluster-management-hub/cluster-manager-placement-controller"}},
		{[]string{"get", "hub-info", "-o=json"}, []string{`"product": "OCM v1.3.1"`, `"cluster-manager-registration-webhook"`}},
		{[]string{"get", "klusterlet-info"}, []string{"Product: OCM v1.3.1", upstream.WorkAgent}},
	} {
		r := ocm(t, append(tc.args, "--kubeconfig="+config)...)
		if r.code != 0 || strings.Contains(r.out+r.err, "newer than this command") || strings.Contains(r.out, "skew") {
			t.Errorf("%v: exit code %d: %s%s", tc.args, r.code, r.out, r.err)
		}
		for _, part := range tc.parts {
			if !strings.Contains(r.out, part) {
				t.Errorf("%v: no %q in %s", tc.args, part, r.out)
			}
		}
	}
}

// TestOthersAgent runs those of a managed cluster against an agent that
// clusteradm has made. The one with the hub's context must leave the hub alone.
func TestOthersAgent(t *testing.T) {
	t.Parallel()
	cp := controlplane.Lease(t)
	admin := cp.Client(t)
	upstream.Klusterlet(t, admin, "cluster1")
	config := kubeconfig(t, cp)
	flags := []string{"--kubeconfig=" + config, "--cluster-name=cluster1"}
	for _, args := range [][]string{
		{"join", "--hub-token=abcdef.0123456789abcdef", "--hub-apiserver=https://127.0.0.1:1"},
		{"join", "--force", "--hub-kubeconfig=" + config},
		{"join", "--dry-run=server", "--hub-token=abcdef.0123456789abcdef", "--hub-apiserver=https://127.0.0.1:1"},
	} {
		r := ocm(t, append(args, flags...)...)
		if r.code != blocked || !strings.Contains(r.err, upstream.WorkAgent) {
			t.Errorf("%v: exit code %d: %s", args, r.code, r.err)
		}
	}
	r := ocm(t, "check", "agent", "--kubeconfig="+config)
	expectNoAdvice(t, r, "init", "join", "unjoin")
	if !strings.Contains(r.out, upstream.OperatorImage) {
		t.Errorf("it does not say whose the agent is: %s", r.out)
	}
}

// expectNoAdvice checks that what is to be tried has no command that would
// break the installation.
func expectNoAdvice(t *testing.T, r ran, commands ...string) {
	t.Helper()
	for line := range strings.Lines(r.out + r.err) {
		for _, command := range commands {
			if strings.Contains(strings.ToLower(line), "try:") && strings.Contains(line, "kubectl ocm "+command) {
				t.Errorf("advised: %s", line)
			}
		}
	}
}

// TestOperatorsRefuseOthers starts our operators by hand.
func TestOperatorsRefuseOthers(t *testing.T) {
	t.Parallel()
	cp := controlplane.Lease(t)
	admin := cp.Client(t)
	upstream.Hub(t, admin)
	upstream.Klusterlet(t, admin, "cluster1")
	before := resourceVersion(t, admin)
	for role, account := range map[string]string{"clustermanager": names.ClusterManagerOperator, "klusterlet": names.KlusterletOperator} {
		user := cp.KubeconfigFor(t, "system:serviceaccount:"+names.OperatorNamespace+":"+account)
		r := ocm(t, "controller", role, "--kubeconfig="+file(t, user), "--leader-elect=false", "--metrics-port=0", "--health-port=0")
		if r.code != blocked || !strings.Contains(r.err, upstream.OperatorImage) {
			t.Errorf("%s: exit code %d: %s", role, r.code, r.err)
		}
	}
	if after := resourceVersion(t, admin); after != before {
		t.Error("the ClusterManager was written")
	}
}

func resourceVersion(t *testing.T, admin client.Client) string {
	t.Helper()
	manager := &operatorv1.ClusterManager{ObjectMeta: metav1.ObjectMeta{Name: names.ClusterManagerName}}
	if err := admin.Get(t.Context(), client.ObjectKeyFromObject(manager), manager); err != nil {
		t.Fatal(err)
	}
	return manager.ResourceVersion
}
