package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	kind "sigs.k8s.io/kind/pkg/cluster"
	"sigs.k8s.io/kind/pkg/cluster/nodes"
	"sigs.k8s.io/kind/pkg/cluster/nodeutils"
	kindexec "sigs.k8s.io/kind/pkg/exec"
)

// prefix is what the names of the suite's clusters begin with; a context's name follows.
const prefix = "ocm-e2e-"

// hubContext is the context of the hub.
const hubContext = "hub"

// apiServerPort is where an API server listens on its node.
const apiServerPort = 6443

// readyTimeout bounds the start of one cluster once its node runs.
const readyTimeout = 5 * time.Minute

//go:embed hub.yaml
var hubConfig []byte

//go:embed managed.yaml
var managedConfig []byte

// fleet is a hub and its managed clusters.
type fleet struct {
	provider *kind.Provider
	// contexts are the hub's and those of the managed clusters.
	contexts  []string
	nodeImage string
	archives  []string
	// dir has the kubeconfigs.
	dir string
}

func newFleet(s settings) (*fleet, error) {
	provider, err := kind.DetectNodeProvider()
	if err != nil {
		return nil, fmt.Errorf("kind needs a container engine: %w", err)
	}
	f := &fleet{contexts: []string{hubContext}, nodeImage: s.nodeImage, archives: s.archives}
	for i := range s.managed {
		f.contexts = append(f.contexts, fmt.Sprintf("cluster%d", i+1))
	}
	// A run that uses the clusters again finds the same file.
	f.dir = filepath.Join(os.TempDir(), prefix+"kind")
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return nil, err
	}
	f.provider = kind.NewProvider(provider, kind.ProviderWithLogger(logger{}))
	return f, nil
}

func (f *fleet) kubeconfig() string { return filepath.Join(f.dir, "kubeconfig") }

// up has all clusters run, with the images.
func (f *fleet) up(ctx context.Context) error {
	existing, err := f.provider.List()
	if err != nil {
		return fmt.Errorf("the container engine does not answer: %w", err)
	}
	var group errgroup.Group
	for _, name := range f.contexts {
		group.Go(func() error {
			if !slices.Contains(existing, prefix+name) {
				if err := f.create(name); err != nil {
					return fmt.Errorf("creating the cluster %s: %w", name, err)
				}
			}
			if err := f.awaitDNS(name); err != nil {
				return err
			}
			return f.load(name)
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return f.writeKubeconfig()
}

// create creates one cluster. One that fails is kept for its logs.
func (f *fleet) create(name string) error {
	config := managedConfig
	if name == hubContext {
		config = hubConfig
	}
	return f.provider.Create(prefix+name,
		kind.CreateWithRawConfig(config),
		kind.CreateWithNodeImage(f.nodeImage),
		kind.CreateWithKubeconfigPath(filepath.Join(f.dir, name)),
		kind.CreateWithWaitForReady(readyTimeout),
		kind.CreateWithRetain(true),
	)
}

// awaitDNS waits until CoreDNS runs, which needs Pods to reach the API server. A node is ready before
// that, and stays so where kube-proxy crashes.
func (f *fleet) awaitDNS(name string) error {
	node, err := f.node(name)
	if err != nil {
		return err
	}
	output, err := kindexec.CombinedOutputLines(node.Command("kubectl", "--kubeconfig=/etc/kubernetes/admin.conf", "-n", "kube-system",
		"rollout", "status", "deployment/coredns", "--timeout="+readyTimeout.String()))
	if err != nil {
		return fmt.Errorf("the Pods of the cluster %s do not reach its API server; if kube-proxy has too many open files, run: sudo sysctl fs.inotify.max_user_instances=1024: %w: %s",
			name, err, strings.Join(output, " "))
	}
	return nil
}

// load puts the images into the one node of a cluster.
func (f *fleet) load(name string) error {
	node, err := f.node(name)
	if err != nil {
		return err
	}
	for _, path := range f.archives {
		if err := loadArchive(node, path); err != nil {
			return fmt.Errorf("loading %s into %s: %w", path, name, err)
		}
	}
	return nil
}

func loadArchive(node nodes.Node, path string) error {
	archive, err := os.Open(path) //nolint:gosec // Its own command line names it.
	if err != nil {
		return err
	}
	defer archive.Close()
	return nodeutils.LoadImageArchive(node, archive)
}

func (f *fleet) node(name string) (nodes.Node, error) {
	all, err := f.provider.ListInternalNodes(prefix + name)
	if err != nil {
		return nil, err
	}
	return nodeutils.BootstrapControlPlaneNode(all)
}

// writeKubeconfig writes the contexts of all clusters into one file, under their names. The
// API servers have the addresses of their nodes there, at which this machine and the Pods of
// all clusters reach them: kind's own kubeconfig has a port of this machine.
func (f *fleet) writeKubeconfig() error {
	merged := clientcmdapi.NewConfig()
	for _, name := range f.contexts {
		text, err := f.provider.KubeConfig(prefix+name, false)
		if err != nil {
			return err
		}
		config, err := clientcmd.Load([]byte(text))
		if err != nil {
			return err
		}
		node, err := f.node(name)
		if err != nil {
			return err
		}
		address, _, err := node.IP()
		if err != nil {
			return err
		}
		context := config.Contexts[config.CurrentContext]
		cluster := config.Clusters[context.Cluster]
		cluster.Server = fmt.Sprintf("https://%s:%d", address, apiServerPort)
		merged.Contexts[name] = context
		merged.Clusters[context.Cluster] = cluster
		merged.AuthInfos[context.AuthInfo] = config.AuthInfos[context.AuthInfo]
	}
	merged.CurrentContext = hubContext
	return clientcmd.WriteToFile(*merged, f.kubeconfig())
}

// environment is what the command finds in its environment besides.
func (f *fleet) environment() ([]string, error) {
	hub, err := f.node(hubContext)
	if err != nil {
		return nil, err
	}
	route, err := kindexec.OutputLines(hub.Command("ip", "-4", "route", "show", "default"))
	if err != nil {
		return nil, fmt.Errorf("asking the hub's node for its routes: %w", err)
	}
	// default via ADDRESS dev eth0
	fields := strings.Fields(strings.Join(route, " "))
	if len(fields) < 3 {
		return nil, fmt.Errorf("the hub's node has no default route: %q", route)
	}
	return []string{
		"E2E_ENVIRONMENT=kind",
		"KUBECONFIG=" + f.kubeconfig(),
		"E2E_HOST=" + fields[2],
	}, nil
}

// exportLogs keeps the logs of all nodes.
func (f *fleet) exportLogs(dir string) error {
	var errs []error
	for _, name := range f.contexts {
		errs = append(errs, f.provider.CollectLogs(prefix+name, filepath.Join(dir, name)))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("exporting the logs to %s: %w", dir, err)
	}
	fmt.Fprintln(os.Stderr, "The logs of the nodes are in", dir)
	return nil
}

// down deletes all clusters, those that were never completed too.
func (f *fleet) down() error {
	var group errgroup.Group
	for _, name := range f.contexts {
		group.Go(func() error { return f.provider.Delete(prefix+name, filepath.Join(f.dir, name)) })
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("deleting the clusters: %w", err)
	}
	return os.RemoveAll(f.dir)
}
