package local

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// HubName is the cluster that is the hub; ManagedName(1) is the first managed
// cluster. They are the names of clusters, contexts and nodes.
const HubName = "hub"

// ManagedName is the name of the managed cluster number n, from 1.
func ManagedName(n int) string { return fmt.Sprintf("cluster%d", n) }

// clusterNames is the hub and n managed clusters.
func clusterNames(n int) []string {
	names := []string{HubName}
	for i := range n {
		names = append(names, ManagedName(i+1))
	}
	return names
}

// productDir is the directory around the default one. It is ours.
const productDir = "kubectl-ocm"

// DefaultDir is where a user's local clusters are: under XDG_DATA_HOME, or
// under .local/share in the home directory.
func DefaultDir(getenv func(string) string) (string, error) {
	data := getenv("XDG_DATA_HOME")
	if data == "" {
		home := getenv("HOME")
		if home == "" {
			return "", &HintedError{
				Err:  errors.New("there is no home directory for the local clusters"),
				Todo: "name a directory with --dir",
			}
		}
		data = filepath.Join(home, ".local", "share")
	}
	return filepath.Join(data, productDir, "local"), nil
}

// layout names the files of a directory of local clusters.
type layout string

// marker says that a directory is ours to remove.
const marker = "local-clusters"

func (l layout) marker() string     { return filepath.Join(string(l), marker) }
func (l layout) lock() string       { return filepath.Join(string(l), "lock") }
func (l layout) kubeconfig() string { return filepath.Join(string(l), "kubeconfig") }
func (l layout) clusters() string   { return filepath.Join(string(l), "clusters") }

func (l layout) cluster(name string) clusterLayout {
	return clusterLayout(filepath.Join(l.clusters(), name))
}

// names lists the clusters that have a directory: the hub first.
func (l layout) names() ([]string, error) {
	entries, err := os.ReadDir(l.clusters())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	var names []string
	for _, entry := range entries {
		if entry.IsDir() {
			names = append(names, entry.Name())
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		switch {
		case a == b:
			return 0
		case a == HubName:
			return -1
		case b == HubName:
			return 1
		case len(a) != len(b): // cluster2 before cluster10
			return len(a) - len(b)
		}
		return strings.Compare(a, b)
	})
	return names, nil
}

// clusterLayout names the files of one cluster.
type clusterLayout string

func (l clusterLayout) name() string         { return filepath.Base(string(l)) }
func (l clusterLayout) spec() string         { return filepath.Join(string(l), "spec.json") }
func (l clusterLayout) state() string        { return filepath.Join(string(l), "state.json") }
func (l clusterLayout) lock() string         { return filepath.Join(string(l), "supervisor.lock") }
func (l clusterLayout) log() string          { return filepath.Join(string(l), "supervisor.log") }
func (l clusterLayout) kubeconfig() string   { return filepath.Join(string(l), "kubeconfig") }
func (l clusterLayout) controlPlane() string { return filepath.Join(string(l), "control-plane") }
func (l clusterLayout) node() string         { return filepath.Join(string(l), "node") }
