package driver

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SwitchGrace is how long the hub accepts the earlier credential of an add-on whose driver
// changed, once the agent has stored the new one. Pods that run use the earlier one until the
// kubelet has put the new one into their volumes, up to a minute and a half later
// (https://kubernetes.io/docs/concepts/configuration/secret/#using-secrets-as-files-from-a-pod).
// See docs/guides/addons.md#switch-the-driver.
const SwitchGrace = 2 * time.Minute

// SwitchGraceLeft returns how much of SwitchGrace is left at now. stored is the condition of
// the ManagedClusterAddOn that reports the new credential: until it is True, all is left.
func SwitchGraceLeft(stored *metav1.Condition, now time.Time) time.Duration {
	if stored == nil || stored.Status != metav1.ConditionTrue {
		return SwitchGrace
	}
	// The clock of the managed cluster may be ahead.
	return min(max(stored.LastTransitionTime.Add(SwitchGrace).Sub(now), 0), SwitchGrace)
}
