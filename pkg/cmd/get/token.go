package get

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/bootstrap"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// Formats of get token in addition to the usual ones.
const (
	tokenFormat   cli.Format = "token"
	commandFormat cli.Format = "command"
)

type tokenOptions struct {
	env            cli.Env
	out            *cli.Output
	ttl            time.Duration
	server         string
	cluster        string
	bootstrapToken bool
	allowLoopback  bool
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
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	flags := cmd.Flags()
	flags.DurationVar(&o.ttl, "ttl", bootstrap.DefaultTTL, "lifetime of the token, from 10m to 24h")
	flags.StringVar(&o.server, "hub-apiserver", "", "address of the hub that managed clusters can reach")
	flags.StringVar(&o.cluster, "cluster-name", "", "fill this name into the join command")
	flags.BoolVar(&o.bootstrapToken, "use-bootstrap-token", false, "print the Kubernetes bootstrap token that init --use-bootstrap-token created")
	flags.BoolVar(&o.allowLoopback, "allow-loopback", false, "the address is meant, even if only this machine can reach it")
	o.out.AddTo(cmd)
	return cmd
}

func (o *tokenOptions) run(ctx context.Context) error {
	if err := bootstrap.CheckTTL(o.ttl); err != nil {
		return cli.Usagef("%v", err)
	}
	if o.cluster != "" {
		if err := names.ValidateClusterName(o.cluster); err != nil {
			return cli.Usagef("--cluster-name: %v", err)
		}
	}
	config, err := o.env.Kube.Config()
	if err != nil {
		return err
	}
	c, err := cli.NewClient(config)
	if err != nil {
		return err
	}
	if err := fleet.RequireInit(o.env, c); err != nil {
		return err
	}
	address, err := fleet.HubAddress(ctx, config, c, o.server)
	if err != nil {
		return err
	}
	if address.Local != "" && !o.allowLoopback {
		o.env.Warn("other machines cannot use %s: %s; give --hub-apiserver", address.Server, address.Local)
	}
	if warning := address.Probe(ctx); warning != "" {
		o.env.Warn("%s", warning)
	}
	token, err := o.token(ctx, c)
	if err != nil {
		return err
	}
	return o.print(fleet.JoinCommand{Name: o.env.Name, Token: token.Secret(), Hub: address, Cluster: o.cluster}, token)
}

func (o *tokenOptions) token(ctx context.Context, c client.Client) (bootstrap.Token, error) {
	tokens := bootstrap.Tokens{Client: c, Clock: o.env.Clock}
	if !o.bootstrapToken {
		return tokens.Mint(ctx, o.ttl)
	}
	token, err := tokens.Bootstrap(ctx)
	if errors.Is(err, bootstrap.ErrNoToken) {
		return token, cli.NotFoundf("make one with: "+o.env.Command("init --use-bootstrap-token"), "the hub has no bootstrap token for joining")
	}
	return token, err
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
		err = o.out.Object(o.env.Out, command.Info(token))
	}
	return err
}
