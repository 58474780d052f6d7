package cmd

import (
	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
)

// absent are the commands of clusteradm that have no counterpart here. Help does
// not show them; calling one prints what to use instead.
func absent(env cli.Env) []*cobra.Command {
	return []*cobra.Command{
		cli.Absent("addon", "add-ons are enabled and disabled by a ManagedClusterAddOn in the namespace of a cluster",
			"kubectl apply one to enable the add-on, kubectl delete it to disable it; see them with: "+env.Command("get", "addons"), "addons"),
		cli.Absent("clusterset", "cluster sets are not in this release",
			"kubectl label managedcluster NAME KEY=VALUE, and select with: "+env.Command("get", "clusters", "-l", "KEY=VALUE"), "clustersets"),
		cli.Absent("install", "hub add-ons are installed by their own manifests or charts",
			"follow the add-on's documentation; see what is installed with: "+env.Command("get", "addons")),
		cli.Absent("uninstall", "hub add-ons are removed by their own manifests or charts", "follow the add-on's documentation"),
		cli.Absent("upgrade", "init and join upgrade what they installed, and keep its settings",
			"with a newer release, on the hub: "+env.Command("init --wait")+"; on a managed cluster: "+env.Elsewhere("join --cluster-name NAME")),
		cli.Absent("proxy", "this release has no proxy into managed clusters",
			"kubectl with a kubeconfig of the cluster, or OCM's cluster-proxy add-on"),
		cli.Absent("config", "kubeconfig files are kubectl's", "kubectl config"),
		cli.Absent("plugin", "this program has no plugins", "kubectl plugin list"),
		cli.Absent("options", "the flags of every command are in its help", env.Command("--help")),
	}
}
