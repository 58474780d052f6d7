package status

import clusterv1 "open-cluster-management.io/api/cluster/v1"

// ChangesStatus is changesStatus.
func ChangesStatus(before, after *clusterv1.ManagedCluster) bool { return changesStatus(before, after) }
