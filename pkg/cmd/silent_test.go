//go:build linux

package cmd_test

import (
	"bytes"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apply"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/agent"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
)

// TestSilentHubIsNotConnected checks a managed cluster whose agent has not
// noticed yet that its hub is gone.
func TestSilentHubIsNotConnected(t *testing.T) {
	t.Parallel()
	cp := controlplane.Lease(t)
	admin := cp.Client(t)
	dead := bytes.ReplaceAll(cp.Kubeconfig(t, "hub"), []byte(cp.URL), []byte("https://127.0.0.1:1"))
	objs, err := agent.Values{ClusterName: "cluster1", Bootstrap: dead}.Render()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (&apply.Applier{Client: admin, FieldManager: install.FieldManager}).Apply(t.Context(), objs...); err != nil {
		t.Fatal(err)
	}
	klusterlet := &operatorv1.Klusterlet{}
	if err := admin.Get(t.Context(), client.ObjectKey{Name: names.KlusterletName}, klusterlet); err != nil {
		t.Fatal(err)
	}
	klusterlet.Status.Conditions = []metav1.Condition{{
		Type: names.ConditionHubConnectionDegraded, Status: metav1.ConditionFalse,
		Reason: names.ReasonHubConnectionFunctional, LastTransitionTime: metav1.Now(),
	}}
	if err := admin.Status().Update(t.Context(), klusterlet); err != nil {
		t.Fatal(err)
	}
	r := ocm(t, "check", "agent", "--kubeconfig="+kubeconfig(t, cp))
	if !strings.Contains(r.out, "warning  the agent is connected to the hub") {
		t.Errorf("exit code %d: %s", r.code, r.out)
	}
}
