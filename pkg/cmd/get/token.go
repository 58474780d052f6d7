package get

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/bootstrap"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hubaddress"
)

// Formats of get token in addition to the usual ones.
const (
	tokenFormat   cli.Format = "token"
	commandFormat cli.Format = "command"
)

// placeholder stands for the token that a dry run does not create.
const placeholder = "<token>"

type tokenOptions struct {
	env     cli.Env
	out     *cli.Output
	join    fleet.JoinFlags
	cluster string
}

func newToken(env cli.Env) *cobra.Command {
	o := &tokenOptions{env: env, out: cli.NewOutput(cli.Text, tokenFormat, commandFormat)}
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Create a bootstrap token and print the join command",
		Long: `Create a bootstrap token and print the join command. Every call creates a new
token, which "token list" shows and "token revoke" revokes.

The command passes the token in the environment, where other users of the
machine cannot see it. To keep it out of the shell's history as well, write the
output of -o token to a file and join with --hub-token-file.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.join.AddTo(cmd, "address of the hub that managed clusters can reach",
		"print the Kubernetes bootstrap token that init --use-bootstrap-token created")
	cmd.Flags().StringVar(&o.cluster, "cluster-name", "", "fill this name into the join command")
	o.out.AddTo(cmd)
	env.Kube.AddDryRunFlag(cmd)
	return cmd
}

func (o *tokenOptions) run(ctx context.Context) error {
	if err := o.join.CheckTTL(); err != nil {
		return cli.Usagef("%v", err)
	}
	if o.cluster != "" {
		if err := names.ValidateClusterName(o.cluster); err != nil {
			return cli.Usagef("--cluster-name: %v", err)
		}
	}
	c, config, err := o.env.Kube.Connect()
	if err != nil {
		return err
	}
	if err := fleet.RequireInit(ctx, o.env, c); err != nil {
		return err
	}
	address, err := hubaddress.Find(ctx, o.env.Drivers, config, c, o.join.Server)
	if err != nil {
		return err
	}
	o.join.Warn(ctx, o.env, &address)
	if o.env.Kube.DryRun() != cli.DryRunNone {
		o.env.Say("No token was created%s.", o.env.Kube.DryRunSuffix())
		return o.print(fleet.JoinCommand{Name: o.env.Name, Token: placeholder, Hub: address, Cluster: o.cluster}, bootstrap.Token{})
	}
	token, err := o.join.Token(ctx, o.env, c)
	if err != nil {
		return err
	}
	return o.print(fleet.JoinCommand{Name: o.env.Name, Token: token.Secret(), Hub: address, Cluster: o.cluster}, token)
}

func (o *tokenOptions) print(command fleet.JoinCommand, token bootstrap.Token) error {
	var err error
	switch o.out.Format {
	case tokenFormat:
		_, err = fmt.Fprintln(o.env.Out, command.Token)
	case commandFormat:
		_, err = fmt.Fprintln(o.env.Out, command)
	case cli.Text:
		_, err = fmt.Fprintf(o.env.Out, "token=%s\nplease log on spoke and run:\n%s\n", command.Token, command)
		if !token.Expires.IsZero() {
			o.env.Say("The token is valid until %s.", token.Expires.UTC().Format(time.RFC3339))
		}
	default:
		err = o.out.Object(o.env.Out, cli.Header{Kind: fleet.JoinInfoKind}, command.Info(token))
	}
	return err
}
