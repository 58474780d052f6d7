package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// completeTimeout bounds a completion: a shell must not hang on a dead hub.
const completeTimeout = 3 * time.Second

// CompleteObjects completes the names of the objects on the cluster that a list
// can hold, also behind commas. A name that objects share appears once; one that
// the arguments have already does not. Without a cluster there is nothing to
// complete with, which is no error.
func CompleteObjects(env Env, newList func() client.ObjectList) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		before, word := "", typed
		if i := strings.LastIndex(typed, ","); i >= 0 {
			before, word = typed[:i+1], typed[i+1:]
		}
		used := append(strings.Split(before, ","), args...)
		var completions []cobra.Completion
		for _, name := range namesOf(cmd.Context(), env, newList()) {
			if strings.HasPrefix(name, word) && !slices.Contains(used, name) {
				completions = append(completions, before+name)
				used = append(used, name)
			}
		}
		return completions, cobra.ShellCompDirectiveNoFileComp
	}
}

// namesOf returns the names of all objects that list can hold, none if that
// fails.
func namesOf(ctx context.Context, env Env, list client.ObjectList) []string {
	ctx, cancel := context.WithTimeout(ctx, completeTimeout)
	defer cancel()
	c, err := env.Kube.Client()
	if err != nil {
		return nil
	}
	if err := c.List(ctx, list); err != nil {
		return nil
	}
	var names []string
	_ = apimeta.EachListItem(list, func(item runtime.Object) error {
		object, err := apimeta.Accessor(item)
		if err == nil {
			names = append(names, object.GetName())
		}
		return err
	})
	return names
}
