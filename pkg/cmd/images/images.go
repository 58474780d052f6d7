// Package images is the "images" command: it lists the container images that
// init and join run, for registries without a way to the internet.
package images

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/buildinfo"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
)

// image is the stable schema of one image.
type image struct {
	Image string   `json:"image"`
	Use   []string `json:"use"`
}

// New returns the command.
func New(env cli.Env) *cobra.Command {
	out := cli.ListOutput()
	var registry string
	cmd := &cobra.Command{
		Use:   "images",
		Short: "List the container images that are used",
		RunE: func(*cobra.Command, []string) error {
			if registry == "" && !buildinfo.Published() {
				env.Warn("no container image was published for this build: build it with \"make image\", and name it with --image of init and join")
			}
			items := []image{{
				Image: install.Workload{Registry: registry}.DefaultImage(),
				Use:   []string{"operators", "hub components", "token authorizer", "agents", "cleanup job"},
			}}
			return cli.PrintList(env.Out, out, cli.Kind[image]{Name: "Image", Ref: func(i image) cli.Ref { return cli.RefTo("", "", i.Image, time.Time{}) }}, items,
				[]cli.Column[image]{{Header: "image", Value: func(i image) string { return i.Image }}})
		},
	}
	cmd.Flags().StringVar(&registry, "image-registry", "", "registry and path to take the image from")
	out.AddTo(cmd)
	return cmd
}
