package driver

import (
	"maps"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/kubeconfig"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// SecretData returns the content of a hub kubeconfig Secret: the files of the
// credential, the kubeconfig for connecting to hub as user, and the identity of the
// credential.
func SecretData(hub kubeconfig.Hub, id Identity, user clientcmdapi.AuthInfo, issued Data) (Data, error) {
	encoded, err := hub.Encode(user)
	if err != nil {
		return nil, err
	}
	data := Data{
		names.KeyKubeconfig:  encoded,
		names.KeyClusterName: []byte(id.Cluster),
		names.KeyAgentName:   []byte(id.Agent),
	}
	maps.Copy(data, issued)
	return data, nil
}
