package controller

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// podLock is the leader election lock of a pod, held under the pod's name: a
// container that was killed and started again in its pod goes on at once,
// where a name made up by each process would have to wait until the lease of
// the one before ends. It is nil outside a pod, or without leader election.
func (c *common) podLock(config *rest.Config, namespace, name string) (resourcelock.Interface, error) {
	pod := os.Getenv("POD_NAME")
	if pod == "" || !c.leaderElect {
		return nil, nil //nolint:nilnil // the manager's word for its own lock
	}
	lock, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, namespace, name,
		resourcelock.ResourceLockConfig{Identity: pod}, config, c.lease.renew)
	if err != nil {
		return nil, fmt.Errorf("prepare leader election: %w", err)
	}
	return lock, nil
}

// patient makes the defaults of leader election outlast an outage of the
// cluster's API server long enough to tell the hub about it, which is the
// agent's task. OCM waits 137 s; a cluster whose node died would be without an
// agent for that long, and its certificate may not have the time.
func (c *common) patient(flags *pflag.FlagSet) {
	for name, duration := range map[string]time.Duration{
		"leader-election-lease-duration": time.Minute,
		"leader-election-renew-deadline": 50 * time.Second,
		"leader-election-retry-period":   10 * time.Second,
	} {
		if flag := flags.Lookup(name); flag != nil {
			_ = flag.Value.Set(duration.String()) // A duration is a duration.
			flag.DefValue = duration.String()
		}
	}
}
