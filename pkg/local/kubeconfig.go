package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/atomicfile"
)

// mergeKubeconfigs writes the kubeconfig with a context for each cluster; the
// hub's is the current one.
func (l layout) mergeKubeconfigs() error {
	names, err := l.names()
	if err != nil {
		return err
	}
	merged := clientcmdapi.NewConfig()
	for _, name := range names {
		config, err := clientcmd.LoadFromFile(l.cluster(name).kubeconfig())
		if errors.Is(err, fs.ErrNotExist) {
			continue // never started
		}
		if err != nil {
			return fmt.Errorf("kubeconfig of %s: %w", name, err)
		}
		merged.Clusters[name] = config.Clusters[name]
		merged.AuthInfos[name] = config.AuthInfos[name]
		merged.Contexts[name] = config.Contexts[name]
	}
	merged.CurrentContext = HubName
	data, err := clientcmd.Write(*merged)
	if err != nil {
		return fmt.Errorf("kubeconfig: %w", err)
	}
	return atomicfile.Write(l.kubeconfig(), data)
}

// Kubeconfig returns the path of the kubeconfig of a cluster, or, for "", of
// the one with a context for each cluster. It exists.
func Kubeconfig(dir, cluster string) (string, error) {
	l := layout(dir)
	names, err := l.existing(cluster)
	if err != nil {
		return "", err
	}
	path := l.kubeconfig()
	if cluster != "" {
		path = l.cluster(names[0]).kubeconfig()
	}
	if _, err := os.Stat(path); err != nil {
		return "", &HintedError{Err: fmt.Errorf("there is no kubeconfig yet: %w", ErrNotRunning), Todo: "start the clusters again"}
	}
	return path, nil
}

// existing returns the clusters of a directory, or the one of a name.
func (l layout) existing(cluster string) ([]string, error) {
	names, err := l.names()
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%w in %s", ErrNoClusters, string(l))
	}
	if cluster == "" {
		return names, nil
	}
	for _, name := range names {
		if name == cluster {
			return []string{name}, nil
		}
	}
	return nil, fmt.Errorf("%w: %s; there are: %v", ErrUnknownCluster, cluster, names)
}
