//go:build linux

package local

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/buildinfo"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/local"
)

type upOptions struct {
	*command
	managed       int
	localkube     string
	hubLocalkube  string
	images        []string
	noSigner      bool
	certDuration  time.Duration
	apiServerArgs []string
	wait          cli.Wait
}

func (c *command) up() *cobra.Command {
	o := &upOptions{command: c}
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start a hub and managed clusters, or those of them that do not run",
		Long: `Start a hub and managed clusters, or those of them that do not run. Running it
again repairs what a crash has left, and adds clusters when --managed is larger.

An image is an executable on this machine: its entrypoint, and all that it
holds. This binary is the image of its release in every version, as
"` + c.env.Name + ` images" prints it.`,
		Example: `  # A hub and two managed clusters
  ` + c.env.Name + ` local up

  # One more managed cluster, and an image of your own
  ` + c.env.Name + ` local up --managed 3 --image example.com/agent=./bin/agent

  # Use them
  export KUBECONFIG=$(` + c.env.Name + ` local kubeconfig --path)`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.withDir(func(dir string) error { return o.run(cmd.Context(), dir) })
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&o.managed, "managed", 2, "number of managed clusters")
	flags.StringVar(&o.localkube, "localkube", "", "the localkube executable (default: $LOCALKUBE, or the first that exists: next to this binary, ../libexec/kubectl-ocm/localkube from there and in ~/.local, /usr/local and /usr, on the PATH)")
	flags.StringVar(&o.hubLocalkube, "hub-localkube", "", "the localkube executable of the hub, for a hub of another Kubernetes version (default: $HUB_LOCALKUBE, or that of the other clusters)")
	flags.StringArrayVar(&o.images, "image", nil, "run an executable for an image, as IMAGE=FILE; can be repeated")
	flags.BoolVar(&o.noSigner, "no-client-signer", false, "start a hub that signs no client certificates, as some providers do not")
	flags.DurationVar(&o.certDuration, "certificate-lifetime", 0, "longest life of certificates that the clusters sign, to watch renewal (default one year)")
	flags.StringArrayVar(&o.apiServerArgs, "apiserver-arg", nil, "one more argument of every API server, such as --audit-log-path=FILE; can be repeated")
	o.wait.Timeout = cli.Timeout(upTimeout)
	o.wait.Timeout.AddTo(cmd)
	return cmd
}

func (o *upOptions) run(ctx context.Context, dir string) error {
	if o.managed < 0 {
		return cli.Usagef("--managed must not be negative")
	}
	options, err := o.options(dir)
	if err != nil {
		return err
	}
	ctx, cancel := o.wait.Context(ctx)
	defer cancel()
	title := fmt.Sprintf("Starting a hub and %d managed clusters", o.managed)
	if o.managed == 1 {
		title = "Starting a hub and a managed cluster"
	}
	err = o.env.Progress().Step(ctx, title, func(ctx context.Context, say cli.Say) error {
		options.Report = func(cluster, doing string) {
			if doing != "" {
				say("%s: %s", cluster, doing)
			}
		}
		return local.Up(ctx, options)
	})
	if err != nil {
		return o.wait.TimedOut(err, "the clusters to start", "re-run the command; it continues where it stopped")
	}
	return o.next(ctx, dir)
}

// next prints the clusters and the next steps.
func (o *upOptions) next(ctx context.Context, dir string) error {
	statuses, err := local.Status(ctx, dir)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(o.env.Out, 0, 8, 2, ' ', 0)
	for _, s := range statuses {
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\n", s.Name, strings.ToLower(string(s.Phase)), s.URL)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	o.env.Say("\nUse them:        export KUBECONFIG=$(%s)", o.line("local kubeconfig --path"))
	o.env.Say("Take them down:  %s", o.line("local down"))
	return nil
}

func (o *upOptions) options(dir string) (local.Options, error) {
	images, err := parseImages(o.images)
	if err != nil {
		return local.Options{}, err
	}
	argv, err := self()
	if err != nil {
		return local.Options{}, err
	}
	executable := argv[0]
	for _, image := range []string{buildinfo.LocalRepository, buildinfo.Repository()} {
		if _, ok := images[image]; !ok {
			images[image] = executable
		}
	}
	localkube, err := local.FindLocalkube(cmp.Or(o.localkube, o.env.Getenv("LOCALKUBE")), executable, o.env.Getenv)
	if err != nil {
		return local.Options{}, err
	}
	hubLocalkube, err := local.FindLocalkube(cmp.Or(o.hubLocalkube, o.env.Getenv("HUB_LOCALKUBE"), localkube), executable, o.env.Getenv)
	if err != nil {
		return local.Options{}, err
	}
	return local.Options{
		Dir: dir, Managed: o.managed, Localkube: localkube, HubLocalkube: hubLocalkube,
		Images: maps.Clone(images), NoClientSigner: o.noSigner, CertDuration: o.certDuration, APIServerArgs: o.apiServerArgs,
		Supervisor: func(dir, cluster string) []string {
			return []string{executable, "local", superviseName, "--dir", dir, "--cluster", cluster}
		},
		Container: []string{executable, "local", containerName},
		Clock:     o.env.Clock,
	}, nil
}

// parseImages reads IMAGE=FILE pairs. An image reference holds no "=".
func parseImages(pairs []string) (map[string]string, error) {
	images := map[string]string{}
	for _, pair := range pairs {
		image, file, ok := strings.Cut(pair, "=")
		if !ok || image == "" || file == "" {
			return nil, cli.Usagef("--image must be IMAGE=FILE, not %q", pair)
		}
		path, err := absolute(file)
		if err != nil {
			return nil, err
		}
		images[image] = path
	}
	return images, nil
}

func absolute(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("the current directory: %w", err)
	}
	return path, nil
}
