//go:build linux

package controller

import (
	"context"
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"
)

// lock is the leader election lock of a role. In a pod it is held under the
// pod's name: a container that was killed and started again in its pod continues
// at once, where a name made up by each process would have to wait until the
// lease of the one before ends. It is nil without leader election.
func (c *common) lock(config *rest.Config, namespace, name string) (resourcelock.Interface, error) {
	if !c.leaderElect {
		return nil, nil //nolint:nilnil // the manager's word for its own lock
	}
	identity := os.Getenv("POD_NAME")
	if identity == "" {
		host, err := os.Hostname()
		if err != nil {
			return nil, fmt.Errorf("prepare leader election: %w", err)
		}
		identity = host + "_" + string(uuid.NewUUID())
	}
	lock, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, namespace, name,
		resourcelock.ResourceLockConfig{Identity: identity}, config, c.lease.renew)
	if err != nil {
		return nil, fmt.Errorf("prepare leader election: %w", err)
	}
	return &sparingLock{Interface: lock, every: c.lease.every, clock: clock.RealClock{}}, nil
}

// sparingLock renews a lease less often than it is tried, because the retry
// period is also how long another process waits for a lease that was released:
// that should be short, and renewals need not be. A lease that is trusted
// renewed can be as old as every, which the renew deadline has to leave room for.
// Leader election uses a lock from one goroutine only.
type sparingLock struct {
	resourcelock.Interface
	// every is how often a renewal is written.
	every time.Duration
	clock clock.PassiveClock

	written resourcelock.LeaderElectionRecord
	at      time.Time
}

// Update implements resourcelock.Interface. What takes or releases the lease is
// always written, and after a failure so is everything until one succeeds.
func (l *sparingLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	now := l.clock.Now()
	renewal := record.HolderIdentity == l.written.HolderIdentity && record.LeaderTransitions == l.written.LeaderTransitions
	if renewal && now.Sub(l.at) < l.every {
		return nil
	}
	l.at = time.Time{}
	if err := l.Interface.Update(ctx, record); err != nil {
		return err
	}
	l.written, l.at = record, now
	return nil
}

// newPatient returns the defaults of a role whose leader election outlasts an
// outage of the cluster's API server long enough to report it to the hub, which is
// the agent's task. OCM waits 137 s; a cluster whose node died would be without an
// agent for that long, and its certificate may not have the time.
func newPatient() common {
	c := newCommon()
	c.lease.duration, c.lease.renew, c.lease.every = time.Minute, 45*time.Second, 10*time.Second
	return c
}
