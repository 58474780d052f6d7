package local

import (
	"fmt"
	"os"
	"slices"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/atomicfile"
)

// mergeKubeconfigs writes the kubeconfig with a context for each cluster; the
// hub's is the current one.
func (l layout) mergeKubeconfigs() error {
	names, err := l.names()
	if err != nil {
		return err
	}
	var rules clientcmd.ClientConfigLoadingRules
	for _, name := range names {
		rules.Precedence = append(rules.Precedence, l.cluster(name).kubeconfig())
	}
	merged, err := rules.Load() // Clusters that were never started have no file.
	if err != nil {
		return fmt.Errorf("kubeconfig: %w", err)
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
	if slices.Contains(names, cluster) {
		return []string{cluster}, nil
	}
	return nil, fmt.Errorf("%w: %s; there are: %v", ErrUnknownCluster, cluster, names)
}
