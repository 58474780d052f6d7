package operand

import "strings"

// SyncedLabels returns the labels to copy: all but the app label, which the manifests set
// themselves, and those of OCM, which have a meaning. See
// docs/reference/wire-contract.md#synced-labels.
func SyncedLabels(labels map[string]string) map[string]string {
	synced := map[string]string{}
	for key, value := range labels {
		if key != "app" && !strings.Contains(key, "open-cluster-management.io") {
			synced[key] = value
		}
	}
	return synced
}
