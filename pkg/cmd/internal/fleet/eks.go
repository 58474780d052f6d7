package fleet

import (
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/awsarn"
)

// CurrentEKSCluster returns the EKS cluster that the kubeconfig leads to, and false
// if the kubeconfig does not say: its cluster entry must be named by an ARN, as
// "aws eks update-kubeconfig" names it, and no flag may lead elsewhere.
func CurrentEKSCluster(kube *cli.Kube) (awsarn.Cluster, bool) {
	config, err := kube.Loader().RawConfig()
	if err != nil {
		return awsarn.Cluster{}, false
	}
	connection, err := kube.Loader().ClientConfig()
	if err != nil {
		return awsarn.Cluster{}, false
	}
	name, _ := kube.Target()
	context, ok := config.Contexts[name]
	if !ok {
		return awsarn.Cluster{}, false
	}
	entry, ok := config.Clusters[context.Cluster]
	if !ok || entry.Server != connection.Host {
		return awsarn.Cluster{}, false
	}
	cluster, err := awsarn.ParseCluster(context.Cluster)
	return cluster, err == nil
}
