// Package token is the "token" command: it lists and revokes bootstrap tokens. A
// token's content is never shown again; "get token" makes a new one.
package token

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/bootstrap"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/fleet"
)

// New returns the command.
func New(env cli.Env) *cobra.Command {
	return cli.Parent("token", "List and revoke bootstrap tokens", newList(env), newRevoke(env))
}

func newList(env cli.Env) *cobra.Command {
	out := cli.ListOutput()
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the bootstrap tokens of the hub",
		RunE: func(cmd *cobra.Command, _ []string) error {
			tokens, err := open(cmd.Context(), env)
			if err != nil {
				return err
			}
			infos, err := tokens.List(cmd.Context())
			if err != nil {
				return err
			}
			if len(infos) == 0 && !out.Machine() {
				env.Say("No bootstrap tokens found.")
				return nil
			}
			return cli.PrintList(env.Out, out, cli.Kind[bootstrap.TokenInfo]{Name: "JoinToken", Ref: ref}, infos, columns(env))
		},
	}
	out.AddTo(cmd)
	return cmd
}

// ref is the Secret that a token is revoked by.
func ref(i bootstrap.TokenInfo) cli.Ref {
	return cli.RefTo("secret", i.Secret.Namespace, i.Secret.Name, i.Created)
}

func columns(env cli.Env) []cli.Column[bootstrap.TokenInfo] {
	now := env.Clock.Now()
	return []cli.Column[bootstrap.TokenInfo]{
		{Header: "id", Value: func(i bootstrap.TokenInfo) string { return i.ID }},
		{Header: "type", Value: func(i bootstrap.TokenInfo) string { return string(i.Kind) }},
		{Header: "expires", Value: func(i bootstrap.TokenInfo) string {
			switch {
			case i.Expired:
				return "expired"
			case i.Expires == nil:
				return "never"
			}
			return "in " + duration.ShortHumanDuration(i.Expires.Sub(now))
		}},
		{Header: "user", Wide: true, Value: func(i bootstrap.TokenInfo) string { return i.User }},
		{Header: "age", Value: func(i bootstrap.TokenInfo) string { return cli.Age(i.Created, now) }},
	}
}

func newRevoke(env cli.Env) *cobra.Command {
	var yes cli.Yes
	changes := cli.NewChanges(env)
	cmd := &cobra.Command{
		Use:     "revoke ID...",
		Aliases: []string{"delete"},
		Short:   "Revoke bootstrap tokens",
		Long: `Revoke bootstrap tokens, at once but for the few seconds that an API server
remembers an answer. Clusters that joined with them are not affected.`,
		Args: cobra.MinimumNArgs(1),
		ValidArgsFunction: func(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return complete(cmd.Context(), env), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, ids []string) error {
			return changes.End(revoke(cmd.Context(), env, changes, ids, yes))
		},
	}
	cli.AddYesFlag(cmd.Flags(), &yes)
	changes.AddTo(cmd)
	env.Kube.AddDryRunFlag(cmd)
	return cmd
}

func revoke(ctx context.Context, env cli.Env, changes *cli.Changes, ids []string, yes cli.Yes) error {
	tokens, err := open(ctx, env)
	if err != nil {
		return err
	}
	question := fmt.Sprintf("Revoke %s? Clusters that still hold one of these tokens cannot join with it any more.", strings.Join(ids, ", "))
	if err := env.Confirm(yes, question); err != nil {
		return err
	}
	for _, id := range ids {
		info, err := tokens.Revoke(ctx, strings.TrimPrefix(id, "secret/"))
		var refused *cli.WriteRefusedError
		switch {
		case errors.Is(err, bootstrap.ErrNoToken):
			return cli.NotFoundf("list the tokens with: "+env.Command("token list"), "the hub has no bootstrap token %q", id)
		case errors.As(err, &refused):
		case err != nil:
			return err
		}
		if err := changes.AddLine(ref(info), "revoked", "token/"+info.ID+" revoked"); err != nil {
			return err
		}
	}
	return nil
}

func complete(ctx context.Context, env cli.Env) []cobra.Completion {
	tokens, err := open(ctx, env)
	if err != nil {
		return nil
	}
	infos, err := tokens.List(ctx)
	if err != nil {
		return nil
	}
	ids := make([]cobra.Completion, len(infos))
	for i, info := range infos {
		ids[i] = info.ID
	}
	return ids
}

func open(ctx context.Context, env cli.Env) (bootstrap.Tokens, error) {
	c, err := env.Kube.Client()
	if err != nil {
		return bootstrap.Tokens{}, err
	}
	if err := fleet.RequireInit(ctx, env, c); err != nil {
		return bootstrap.Tokens{}, err
	}
	return bootstrap.Tokens{Client: client.Client(c), Clock: env.Clock}, nil
}
