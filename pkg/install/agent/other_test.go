//go:build linux

package agent_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/agent"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installer"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/upstream"
)

// TestOthersAgentIsRefused is about "clusteradm join" having been there first.
func TestOthersAgentIsRefused(t *testing.T) {
	t.Parallel()
	cp := controlplane.Lease(t)
	r := agent.Runner{Runner: installer.New(t, cp)}
	upstream.Klusterlet(t, r.Client, "cluster1")
	before := installer.Contents(t, r.Client)
	k := agent.Values{ClusterName: "cluster1", Bootstrap: []byte("{}")}
	_, err := r.Install(t.Context(), k, nil)
	for _, err := range []error{err, r.RefuseOthersAgent(t.Context())} {
		if _, ok := errors.AsType[*install.PreflightError](err); !ok {
			t.Fatalf("got %v", err)
		}
		for _, part := range []string{"open-cluster-management/klusterlet", upstream.OperatorImage, upstream.WorkAgent, "join --take-over"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("the refusal does not name %s: %v", part, err)
			}
		}
	}
	if diff := cmp.Diff(before, installer.Contents(t, r.Client)); diff != "" {
		t.Errorf("something was written (-before +after):\n%s", diff)
	}
}
