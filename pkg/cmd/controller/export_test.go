//go:build linux

package controller

import (
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"
)

// Sparing is a sparingLock around lock.
func Sparing(lock resourcelock.Interface, every time.Duration, c clock.PassiveClock) resourcelock.Interface {
	return &sparingLock{Interface: lock, every: every, clock: c}
}
