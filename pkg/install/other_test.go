//go:build linux

package install_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/bootstrap"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/agent"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/hub"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installer"
)

// TestOwnInstallationIsNoOther re-runs init and join over what they installed,
// also over what the first builds installed and over what a pipeline applied
// from a rendering, without any mark of ours.
func TestOwnInstallationIsNoOther(t *testing.T) {
	t.Parallel()
	cp := controlplane.Lease(t)
	r := installer.New(t, cp)
	wantedHub, info := hub.Values{}, bootstrap.ClusterInfo{Server: "https://hub.example"}
	wantedAgent := agent.Values{ClusterName: "cluster1", Bootstrap: []byte("{}")}
	again := func(when string) {
		t.Helper()
		if _, err := (hub.Runner{Runner: r}).Init(t.Context(), wantedHub, info); err != nil {
			t.Errorf("init %s: %v", when, err)
		}
		if _, err := (agent.Runner{Runner: r}).Install(t.Context(), wantedAgent, nil); err != nil {
			t.Errorf("join %s: %v", when, err)
		}
	}
	again("at first")
	again("again")
	for _, name := range []string{names.ClusterManagerOperator, names.KlusterletOperator} {
		var d appsv1.Deployment
		if err := r.Client.Get(t.Context(), client.ObjectKey{Namespace: names.OperatorNamespace, Name: name}, &d); err != nil {
			t.Fatal(err)
		}
		patch := client.MergeFrom(d.DeepCopy())
		d.Annotations = nil
		d.Spec.Template.Spec.Containers[0].Image = "mirror.example/ocm/registration:v1"
		if err := r.Client.Patch(t.Context(), &d, patch); err != nil {
			t.Fatal(err)
		}
	}
	again("over a copy without marks")
}
