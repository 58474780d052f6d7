package fleet

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/bootstrap"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// ExternalServer returns the address of a managed cluster that it publishes
// about itself, for the hub to know; "" when it publishes none that could be
// used from elsewhere.
func ExternalServer(ctx context.Context, c client.Reader) (string, error) {
	var config corev1.ConfigMap
	err := c.Get(ctx, client.ObjectKey{Namespace: names.ClusterInfoNamespace, Name: names.ClusterInfoConfigMap}, &config)
	if err != nil {
		// The address is a courtesy; whether we may work here is checked later.
		return "", nil //nolint:nilerr // see above
	}
	info, err := bootstrap.ParseClusterInfo([]byte(config.Data["kubeconfig"]))
	if err != nil {
		return "", nil //nolint:nilerr // somebody else's ConfigMap of that name
	}
	server, err := bootstrap.ParseServer(info.Server)
	if err != nil || bootstrap.LocalOnly(server.String()) != "" {
		return "", nil //nolint:nilerr // not an address for others
	}
	return server.String(), nil
}
