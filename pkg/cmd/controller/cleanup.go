//go:build linux

package controller

import (
	"errors"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/scheme"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/cleanup"
)

func newCleanup() *cobra.Command {
	var connection common
	opts := cleanup.Options{}
	cmd := &cobra.Command{
		Use:   "cleanup",
		Short: "Delete ManagedClusters that unjoined and stayed denied, once",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if opts.DeniedFor < 0 {
				return errors.New("--denied-for: a time that has passed is not negative")
			}
			config, err := connection.config()
			if err != nil {
				return err
			}
			c, err := client.New(config, client.Options{Scheme: scheme.New()})
			if err != nil {
				return err
			}
			return cleanup.Run(cmd.Context(), c, opts, clock.RealClock{}.Now(), cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&connection.kubeconfig, "kubeconfig", "", "kubeconfig of the hub; empty means the cluster it runs in")
	cmd.Flags().DurationVar(&opts.DeniedFor, "denied-for", 24*time.Hour, "how long a cluster must have been denied")
	cmd.Flags().BoolVar(&opts.DryRun, "dry-run", false, "only say what would be deleted")
	return cmd
}
