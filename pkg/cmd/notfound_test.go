//go:build linux

package cmd_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installation"
)

// notFound is the exit code of what does not exist.
const notFound = 4

// TestNotFound names what a hub does not have: there is one sentence about it,
// and what to try is a command for the same cluster.
func TestNotFound(t *testing.T) {
	t.Parallel()
	cp := controlplane.Lease(t)
	admin := cp.Client(t)
	installation.Hub(t, admin, manifests.Hub{AddOnManager: &manifests.Component{}})
	installation.Create(t, admin, &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "cluster1"}})
	target := " --kubeconfig " + kubeconfig(t, cp) + " --context local"
	for call, try := range map[string]string{
		"get clusters nope":                "",
		"get clusters nope -o wide":        "",
		"get clusters nope -o json":        "",
		"get clusters nope -o tree":        "",
		"accept nope":                      "",
		"accept nope --deny --yes":         "",
		"get addons nope":                  "kubectl ocm get addons",
		"get addons nope -o tree":          "kubectl ocm get addons",
		"addon-auth status --addon nope":   "kubectl ocm get addons",
		"addon-auth rotate --addon nope":   "kubectl ocm get addons",
		"issuer show nope":                 "kubectl ocm issuer list",
		"issuer remove nope --yes":         "kubectl ocm issuer list",
		"exchange allow nope a/b --to c/d": "kubectl ocm get clusters",
		"unjoin nope --side=hub --yes":     "kubectl ocm get clusters",
	} {
		r := ocm(t, strings.Fields(call+target)...)
		if try != "" {
			try += target
		}
		if r.code != notFound || r.out != "" || strings.Contains(r.err, "found.") || !strings.Contains(r.err, try) {
			t.Errorf("%s: exit code %d: %s%s", call, r.code, r.out, r.err)
		}
	}
	// What is there is shown all the same.
	r := ocm(t, strings.Fields("get clusters cluster1 nope -o name"+target)...)
	if r.code != notFound || !strings.HasSuffix(strings.TrimSpace(r.out), "/cluster1") {
		t.Errorf("exit code %d: %s%s", r.code, r.out, r.err)
	}
}

// TestNotReadIsNotNotAccepted accepts a cluster without the right to read it:
// nothing is said about its state.
func TestNotReadIsNotNotAccepted(t *testing.T) {
	t.Parallel()
	cp := controlplane.Lease(t)
	installation.Hub(t, cp.Client(t), manifests.Hub{})
	r := ocm(t, "accept", "cluster1", "--kubeconfig", file(t, cp.KubeconfigFor(t, "stranger")))
	if r.code != 1 || r.out != "" || !strings.Contains(r.err, "permission is missing") {
		t.Errorf("exit code %d: %s%s", r.code, r.out, r.err)
	}
}
