//go:build linux

package hub_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/bootstrap"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/hub"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installer"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/upstream"
)

// TestOthersHubIsRefused is about "clusteradm init" having been there first.
func TestOthersHubIsRefused(t *testing.T) {
	t.Parallel()
	cp := controlplane.Lease(t)
	r := hub.Runner{Runner: installer.New(t, cp)}
	upstream.Hub(t, r.Client)
	before := installer.Contents(t, r.Client)
	_, err := r.Init(t.Context(), hub.Values{Workload: install.Workload{Image: "example/kubectl-ocm:v1"}}, bootstrap.ClusterInfo{Server: "https://hub.example"})
	refused, ok := errors.AsType[*install.PreflightError](err)
	if !ok {
		t.Fatalf("got %v", err)
	}
	if refused.Skippable() {
		t.Error("the refusal can be skipped")
	}
	for _, part := range []string{
		"open-cluster-management/cluster-manager", upstream.OperatorImage,
		"end cluster-manager-placement-controller, cluster-manager-registration-webhook, cluster-manager-work-webhook",
		"manifestworkvalidators.admission.work.open-cluster-management.io",
		"rejects every write of ManagedClusters and ManifestWorks",
	} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the refusal does not name %s: %v", part, err)
		}
	}
	if diff := cmp.Diff(before, installer.Contents(t, r.Client)); diff != "" {
		t.Errorf("something was written (-before +after):\n%s", diff)
	}
}
