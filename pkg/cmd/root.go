package cmd

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/accept"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/addonauth"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/aws"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/check"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/clean"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/completion"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/create"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/deletion"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/exchange"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/get"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/images"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/inithub"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/issuer"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/join"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/legacytokens"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/pullsecrets"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/token"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/unjoin"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/version"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/drivers"
)

// Env is what the process gives to its commands.
type Env = cli.Env

// Streams are where the commands read and write.
type Streams = genericiooptions.IOStreams

// New returns the command tree of one call.
func New(env Env) *cobra.Command {
	if env.Kube == nil {
		env.Kube = cli.NewKube()
	}
	if env.Drivers == nil {
		env.Drivers = drivers.All()
	}
	root := &cobra.Command{
		Use:   "kubectl-ocm COMMAND",
		Short: "Manage the identities of a fleet of Kubernetes clusters",
		Long: `Manage cluster, add-on and workload identities for a fleet of Kubernetes
clusters.`,
		Annotations:           map[string]string{cobra.CommandDisplayNameAnnotation: env.Name},
		DisableFlagsInUseLine: true,
		SilenceErrors:         true,
		SilenceUsage:          true,
		RunE:                  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return cli.UnknownCommand(cmd, args[0])
			}
			return nil
		},
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.SetIn(env.In)
	root.SetOut(env.Out)
	root.SetErr(env.ErrOut)
	root.SetUsageFunc(usage)
	root.SetFlagErrorFunc(cli.FlagError)
	root.AddGroup(cli.Groups()...)
	env.Kube.AddFlags(root.PersistentFlags())
	addVerbosity(root.PersistentFlags())
	root.SetHelpCommandGroupID(string(cli.GroupOther))
	for i, s := range sections(env) {
		s.cmd.GroupID = string(s.group)
		cli.SetOrder(s.cmd, i)
		root.AddCommand(s.cmd)
	}
	root.AddCommand(absent(env)...)
	if env.Name == cli.Clusteradm {
		root.Use = env.Name + " COMMAND"
		asClusteradm(root)
	}
	cli.Durations(root)
	cli.CompleteContexts(env, root)
	return root
}

type section struct {
	group cli.Group
	cmd   *cobra.Command
}

// sections lists the commands in the order in which help shows them.
func sections(env Env) []section {
	return append([]section{
		{cli.GroupFleet, inithub.New(env)},
		{cli.GroupFleet, join.New(env)},
		{cli.GroupFleet, accept.New(env)},
		{cli.GroupFleet, unjoin.New(env)},
		{cli.GroupFleet, create.New(env)},
		{cli.GroupFleet, deletion.New(env)},
		{cli.GroupFleet, token.New(env)},
		{cli.GroupFleet, addonauth.New(env)},
		{cli.GroupFleet, exchange.New(env)},
		{cli.GroupFleet, issuer.New(env)},
		{cli.GroupFleet, pullsecrets.New(env)},
		{cli.GroupFleet, aws.New(env)},
		{cli.GroupFleet, legacytokens.New(env)},
		{cli.GroupFleet, clean.New(env)},
		{cli.GroupInspect, get.New(env)},
		{cli.GroupInspect, check.New(env)},
		{cli.GroupOther, images.New(env)},
		{cli.GroupOther, completion.New(env)},
		{cli.GroupOther, version.New(env)},
	}, runners(env)...)
}

// addVerbosity registers the only one of klog's flags that a user of a command
// needs: -v=6 shows the requests.
func addVerbosity(flags *pflag.FlagSet) {
	var all flag.FlagSet
	klog.InitFlags(&all)
	flags.AddGoFlag(all.Lookup("v"))
	f := flags.Lookup("v")
	f.Hidden = true
	f.Value = verbosity{f.Value}
}

// maxVerbosity is the last level at which client-go does not log the bodies of
// requests and answers: there are tokens and Secrets in them.
const maxVerbosity = 7

// verbosity is klog's level, as far as it shows no credentials.
type verbosity struct{ pflag.Value }

// Set implements pflag.Value.
func (v verbosity) Set(s string) error {
	level, err := strconv.Atoi(s)
	if err != nil {
		return errors.New("is not a whole number")
	}
	return v.Value.Set(strconv.Itoa(min(level, maxVerbosity)))
}

// Execute runs the command that args name and returns the exit code. Errors go
// to env.ErrOut as one sentence and, where there is one, a line with what to do.
func Execute(ctx context.Context, env Env, args []string) cli.Code {
	env.Kube = cli.NewKube()
	root := New(env) //nolint:contextcheck // commands get the context when they run
	root.SetArgs(args)
	started := prepare(root)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return cli.CodeDone
	}
	err = cli.Explain(err)
	code := cli.ExitCode(err)
	switch {
	case ctx.Err() != nil:
		code = cli.CodeInterrupted
	case !*started:
		code = cli.CodeUsage
	}
	report(env, cmd, err, code)
	return code
}

// prepare resolves flag aliases on every command, has those that do not say which
// arguments they take refuse all, and reports, after the run, whether a command got
// as far as its own code: all errors before that are about how it was called.
func prepare(root *cobra.Command) (started *bool) {
	started = new(bool)
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		cmd.Flags().SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
			return pflag.NormalizedName(cli.FlagName(cmd, name))
		})
		if cmd.Args == nil && !cmd.DisableFlagParsing {
			cmd.Args = cobra.NoArgs
		}
		if cmd.Args != nil {
			cmd.Args = cli.Args(cmd.Args)
		}
		if run := cmd.RunE; run != nil {
			cmd.RunE = func(cmd *cobra.Command, args []string) error {
				*started = true
				return run(cmd, args)
			}
		}
		for _, child := range cmd.Commands() {
			walk(child)
		}
	}
	walk(root)
	return started
}

func report(env Env, cmd *cobra.Command, err error, code cli.Code) {
	if code == cli.CodeInterrupted {
		_, _ = fmt.Fprintln(env.ErrOut, env.Kube.Interrupted(cmd))
		return
	}
	// Several errors are one per line; the preflight report is indented already.
	_, _ = fmt.Fprintln(env.ErrOut, "Error:", strings.ReplaceAll(err.Error(), "\n", "\n  "))
	var explained *cli.Explained
	if errors.As(err, &explained) && explained.Try != "" {
		_, _ = fmt.Fprintln(env.ErrOut, "  Try:", explained.Try)
	}
	if code == cli.CodeUsage {
		_, _ = fmt.Fprintf(env.ErrOut, "  See: %s --help\n", cmd.CommandPath())
	}
}
