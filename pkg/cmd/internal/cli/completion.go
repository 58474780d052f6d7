package cli

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
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

// CompleteContexts completes the contexts of the kubeconfig for every flag of a
// command that names one.
func CompleteContexts(env Env, cmd *cobra.Command) {
	complete := func(_ *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		raw, err := env.Kube.Loader().RawConfig()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []cobra.Completion
		for _, name := range slices.Sorted(maps.Keys(raw.Contexts)) {
			if strings.HasPrefix(name, typed) {
				names = append(names, name)
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
	for _, flags := range []*pflag.FlagSet{cmd.Flags(), cmd.PersistentFlags()} {
		for _, name := range []string{"context", "hub-context"} {
			if flags.Lookup(name) != nil {
				_ = cmd.RegisterFlagCompletionFunc(name, complete)
			}
		}
	}
	for _, child := range cmd.Commands() {
		CompleteContexts(env, child)
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
