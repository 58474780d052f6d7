package addons

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
)

// completeTimeout bounds a completion: a shell must not hang on a dead hub.
const completeTimeout = 3 * time.Second

// CompleteNames completes the names of add-ons, also behind commas.
func CompleteNames(env cli.Env) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completeTimeout)
		defer cancel()
		c, err := env.Kube.Client()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var list addonv1beta1.ManagedClusterAddOnList
		if err := c.List(ctx, &list); err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		before, word := "", typed
		if i := strings.LastIndex(typed, ","); i >= 0 {
			before, word = typed[:i+1], typed[i+1:]
		}
		used := append(strings.Split(before, ","), args...)
		var names []cobra.Completion
		for i := range list.Items {
			name := list.Items[i].Name
			if strings.HasPrefix(name, word) && !slices.Contains(used, name) {
				names = append(names, before+name)
				used = append(used, name)
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

func joined(list []string) string { return strings.Join(list, ", ") }
