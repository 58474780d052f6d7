package names

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// ErrClusterName is wrapped by every error of ValidateClusterName.
var ErrClusterName = errors.New("invalid cluster name")

// ValidateClusterName reports whether name can name a ManagedCluster: a DNS
// label, because the hub gives the cluster a namespace of that name. It rejects names
// whose derived names have another meaning: "managed-clusters", whose group is every
// cluster's, "registration" and "work", whose ClusterRole is one that all clusters
// share.
// See docs/reference/wire-contract.md#cluster-name.
func ValidateClusterName(name string) error {
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
		return fmt.Errorf("%w %q: %s", ErrClusterName, name, strings.Join(problems, "; "))
	}
	switch {
	case ClusterGroup(name) == GroupManagedClusters,
		slices.Contains(SharedClusterRoles(), ManagedClusterClusterRole(name)):
		return fmt.Errorf("%w %q: the name is reserved", ErrClusterName, name)
	}
	return nil
}
