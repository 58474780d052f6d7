package eks

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/awsarn"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/grant"
)

// Roles returns the IAM roles that the hub recorded, by the names of their clusters.
func Roles(ctx context.Context, reader client.Reader) (map[string]awsarn.Role, error) {
	grants, err := grant.Recorded(ctx, reader, names.HubNamespace, driver.AWSIRSA)
	if err != nil {
		return nil, err
	}
	roles := map[string]awsarn.Role{}
	for _, known := range grants {
		if roles[known.Cluster], err = awsirsa.GrantedRole(known); err != nil {
			return nil, err
		}
	}
	return roles, nil
}

// CurrentCluster returns the EKS cluster that the kubeconfig leads to, and false
// if the kubeconfig does not say: its cluster entry must be named by an ARN, as
// "aws eks update-kubeconfig" names it, and no flag may lead elsewhere.
func CurrentCluster(kube *cli.Kube) (awsarn.Cluster, bool) {
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
