package bootstrap

import (
	"errors"
	"fmt"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// ErrClusterInfo is wrapped by errors about the content of cluster-info.
var ErrClusterInfo = errors.New("cluster-info holds no usable kubeconfig")

// ClusterInfo is the content of the public ConfigMap cluster-info of a cluster.
type ClusterInfo struct {
	Server string
	CA     []byte
}

// Encode returns the kubeconfig that the ConfigMap holds: one cluster with an
// empty name and no credentials.
func (i ClusterInfo) Encode() ([]byte, error) {
	data, err := clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{
			"": {Server: i.Server, CertificateAuthorityData: i.CA},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("encode cluster-info: %w", err)
	}
	return data, nil
}

// ParseClusterInfo reads that kubeconfig. With more than one cluster the one
// with the empty name counts.
func ParseClusterInfo(data []byte) (ClusterInfo, error) {
	config, err := clientcmd.Load(data)
	if err != nil {
		return ClusterInfo{}, ErrClusterInfo
	}
	cluster, ok := config.Clusters[""]
	if !ok && len(config.Clusters) == 1 {
		for _, cluster = range config.Clusters {
			ok = true
		}
	}
	if !ok || cluster == nil {
		return ClusterInfo{}, ErrClusterInfo
	}
	return ClusterInfo{Server: cluster.Server, CA: cluster.CertificateAuthorityData}, nil
}
