package manifest

import (
	"cmp"
	"slices"
)

// ranks are the kinds in the order of applying: a kind is applied after those in the
// lines before. Kinds that are not listed follow them all.
func ranks() [][]string {
	return [][]string{
		{"Namespace", "CustomResourceDefinition", "PriorityClass", "StorageClass", "PersistentVolume", "PodSecurityPolicy"},
		{"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"},
		{"ServiceAccount", "NetworkPolicy", "ResourceQuota", "LimitRange", "PodDisruptionBudget"},
		{"Secret", "ConfigMap", "PersistentVolumeClaim"},
		{"Service"},
		{
			"DaemonSet", "Pod", "ReplicationController", "ReplicaSet", "Deployment", "HorizontalPodAutoscaler",
			"StatefulSet", "Job", "CronJob",
		},
		{
			"APIService", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "ValidatingAdmissionPolicy",
			"ValidatingAdmissionPolicyBinding",
		},
	}
}

// Sort returns the manifests in the order of applying them: namespaces, definitions and
// permissions before what needs them, workloads after their configuration, admission
// after what serves it. Manifests of one rank, and those of other kinds, which come
// later, are in the order of the spec. Manifests that cannot be decoded are last.
// See docs/reference/wire-contract.md#work-order.
func Sort(manifests []Manifest) []Manifest {
	order := ranks()
	rank := func(m Manifest) int {
		if m.Object == nil {
			return len(order) + 1
		}
		for i, kinds := range order {
			if slices.Contains(kinds, m.Object.GetKind()) {
				return i
			}
		}
		return len(order)
	}
	return slices.SortedStableFunc(slices.Values(manifests), func(a, b Manifest) int { return cmp.Compare(rank(a), rank(b)) })
}
