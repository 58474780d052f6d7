//go:build linux

package controller

import (
	"errors"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/component-base/featuregate"
	"k8s.io/utils/clock"

	"open-cluster-management.io/api/feature"
)

// Sparing is a sparingLock around lock.
func Sparing(lock resourcelock.Interface, every time.Duration, c clock.PassiveClock) resourcelock.Interface {
	return &sparingLock{Interface: lock, every: every, clock: c}
}

// AgentGate returns whether the settings leave a gate of the agent on.
func AgentGate(name featuregate.Feature, settings ...string) (bool, error) {
	gates, err := parseGates(feature.DefaultSpokeRegistrationFeatureGates, settings)
	return gates[name], errors.Join(err, gates.without(feature.MultipleHubs))
}
