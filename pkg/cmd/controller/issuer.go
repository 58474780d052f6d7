//go:build linux

package controller

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/kubeconfig"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/issuer/publish"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// issuerFlags are the flags of the publisher of a cluster's issuer where it runs
// by itself, next to an agent that is not ours or without any.
type issuerFlags struct {
	common    common
	hub       string
	cluster   string
	namespace string
	account   string
}

func newIssuer() *cobra.Command {
	return newRole(&issuerFlags{common: newPatient()}, &cobra.Command{
		Use:   "issuer",
		Short: "Publish this cluster's token issuer, next to another agent",
		Long: `Publish the issuer and the public keys of this cluster's tokens on a hub, with a
given hub kubeconfig. Our registration agent does the same by itself with
--publish-issuer; this role is for clusters that another agent registers.

The kubeconfig's user needs, on the hub, get, list, watch, create, patch and
delete of the ConfigMap ` + names.IssuerConfigMap + ` in the cluster's namespace and get of the
ManagedCluster. Files that it names lie next to it and are read again when they
change; it runs no program. The ServiceAccount needs, here, create of
serviceaccounts/token of itself. The hub accepts its proof of the keys only if
it is in the namespace ` + names.AgentNamespace + `.`,
	})
}

func (f *issuerFlags) addFlags(cmd *cobra.Command) {
	f.common.addFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.hub, "hub-kubeconfig", "", "kubeconfig of the hub")
	flags.StringVar(&f.cluster, "cluster-name", "", "name of this cluster on the hub")
	flags.StringVar(&f.namespace, "namespace", "", "namespace of the ServiceAccount; empty means $POD_NAMESPACE, else "+names.AgentNamespace)
	flags.StringVar(&f.account, "service-account", "", "ServiceAccount that this role runs as, whose token the keys are tried on")
}

// validate checks the flags, without the network.
func (f *issuerFlags) validate() error {
	var errs []error
	if f.hub == "" {
		errs = append(errs, errors.New("--hub-kubeconfig is missing"))
	}
	if err := names.ValidateClusterName(f.cluster); err != nil {
		errs = append(errs, fmt.Errorf("--cluster-name: %w", err))
	}
	if f.account == "" {
		errs = append(errs, errors.New("--service-account is missing: without a token of its own the agent cannot verify the keys"))
	}
	return errors.Join(errs...)
}

// hubConfig is the connection to the hub, which must be verified. The kubeconfig
// is a mounted Secret.
func (f *issuerFlags) hubConfig() (*rest.Config, error) {
	config, err := mountedConfig(f.hub)
	if err == nil {
		err = verifiesHub(config)
	}
	if err != nil {
		return nil, fmt.Errorf("--hub-kubeconfig: %w", err)
	}
	config.UserAgent = "kubectl-ocm/issuer.publish"
	return unlimited(config), nil
}

// mountedConfig reads the kubeconfig of a mounted Secret.
func mountedConfig(name string) (*rest.Config, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	hub, err := kubeconfig.ParseHub(data)
	if err != nil {
		return nil, err
	}
	if hub, err = hub.Mounted(filepath.Dir(name)); err != nil {
		return nil, err
	}
	return hub.Config()
}

func (f *issuerFlags) run(cmd *cobra.Command) error {
	if err := f.validate(); err != nil {
		return err
	}
	hub, err := f.hubConfig()
	if err != nil {
		return err
	}
	mgr, err := f.common.manager("issuer", cache.Options{})
	if err != nil {
		return err
	}
	account := types.NamespacedName{Namespace: cmp.Or(f.namespace, os.Getenv("POD_NAMESPACE"), names.AgentNamespace), Name: f.account}
	config, err := publishConfig(mgr, account, "")
	if err != nil {
		return err
	}
	config.Hub, config.Cluster = hub, f.cluster
	work, err := publish.New(config)
	if err != nil {
		return err
	}
	if err := mgr.Add(work); err != nil {
		return err
	}
	klog.FromContext(cmd.Context()).Info("Starting to publish this cluster's issuer", "cluster", f.cluster, "hub", hub.Host)
	return mgr.Start(cmd.Context())
}
