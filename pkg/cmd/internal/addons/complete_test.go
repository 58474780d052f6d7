//go:build linux

package addons_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/addons"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installation"
)

// TestCompletion completes the names of add-ons and clusters on a real hub.
func TestCompletion(t *testing.T) {
	t.Parallel()
	cp := controlplane.Lease(t)
	admin := cp.Client(t)
	installation.Hub(t, admin, manifests.Hub{AddOnManager: &manifests.Component{}})
	for _, cluster := range []string{"cluster1", "cluster2", "other"} {
		for _, err := range []error{
			admin.Create(t.Context(), &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: cluster}}),
			admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: cluster}}),
			admin.Create(t.Context(), &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "a1"}}),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, cp.KubeconfigFor(t, "admin", "system:masters"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		complete   func(cli.Env) cobra.CompletionFunc
		kubeconfig string
		args       []string
		typed      string
		want       []cobra.Completion
	}{
		"all clusters":                  {complete: fleet.CompleteClusters, want: []cobra.Completion{"cluster1", "cluster2", "other"}},
		"what begins so":                {complete: fleet.CompleteClusters, typed: "cl", want: []cobra.Completion{"cluster1", "cluster2"}},
		"behind a comma":                {complete: fleet.CompleteClusters, typed: "cluster1,c", want: []cobra.Completion{"cluster1,cluster2"}},
		"not what is an argument":       {complete: fleet.CompleteClusters, args: []string{"other", "cluster2"}, want: []cobra.Completion{"cluster1"}},
		"an add-on of many clusters":    {complete: addons.CompleteNames, want: []cobra.Completion{"a1"}},
		"no cluster to complete with":   {complete: addons.CompleteNames, kubeconfig: "nowhere"},
		"nothing that begins like that": {complete: addons.CompleteNames, typed: "b"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := cli.Env{Kube: cli.NewKube()}
			cmd := &cobra.Command{}
			cmd.SetContext(t.Context())
			env.Kube.AddFlags(cmd.Flags())
			path := kubeconfig
			if tc.kubeconfig != "" {
				path = filepath.Join(t.TempDir(), tc.kubeconfig)
			}
			if err := cmd.Flags().Set("kubeconfig", path); err != nil {
				t.Fatal(err)
			}
			got, directive := tc.complete(env)(cmd, tc.args, tc.typed)
			if diff := cmp.Diff(tc.want, got); diff != "" || directive != cobra.ShellCompDirectiveNoFileComp {
				t.Errorf("directive %v, names (-want +got):\n%s", directive, diff)
			}
		})
	}
}
