package addons

import (
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
)

// CompleteNames completes the names of add-ons, also behind commas.
func CompleteNames(env cli.Env) cobra.CompletionFunc {
	return cli.CompleteObjects(env, func() client.ObjectList { return &addonv1beta1.ManagedClusterAddOnList{} })
}

func joined(list []string) string { return strings.Join(list, ", ") }
