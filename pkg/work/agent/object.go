package agent

import (
	"time"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/agent/executor"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/agent/inventory"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/agent/strategy"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/manifest"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/status"
)

// Repairs of an object that another writer keeps changing back are spread over time.
const (
	firstRepair = time.Second
	mostRepair  = 4 * time.Minute
	// calm is after how long without a repair the next one is the first again.
	calm = 10 * time.Minute
)

// object is everything that the agent knows in memory of one object of a work. A pass
// creates it from a manifest and recalls its memory, which two manifests of the same object
// share. The inventory may change during a pass, so a phase asks it each time.
type object struct {
	manifest.Manifest
	// memory outlives the pass. It is nil until the pass has recalled it, and for a
	// manifest whose kind the cluster does not serve.
	*memory

	inventory *inventory.Inventory
	key       inventory.Key
	meta      workv1.ManifestResourceMeta
	options   manifest.Options
	orphan    bool
	// desired digests everything that decides what is applied.
	desired uint64
	// err is why the manifest is not applied.
	err error
	// checked is true if the executor was checked in this pass, and denied is the result.
	checked bool
	denied  error
	// waits is true while an earlier result of this manifest remains reported.
	waits bool
	// found is the result to report.
	found workv1.ManifestCondition
}

// mapped reports whether the cluster serves the kind of the manifest.
func (o *object) mapped() bool { return o.key.Resource.Resource != "" }

// live returns what the inventory knows of the object now.
func (o *object) live() (live inventory.Object, exists bool) { return o.inventory.Object(o.key) }

// watched reports whether the inventory knows every object of the resource.
func (o *object) watched() bool { return o.inventory.State(o.key.Resource) == inventory.Watched }

// observable reports whether the status of the object matters.
func (o *object) observable() bool { return o.asked() || o.mayBeReady() }

// asked reports whether the work asks for something in the status.
func (o *object) asked() bool { return len(o.options.Feedback) > 0 || len(o.options.Conditions) > 0 }

// mayBeReady reports whether the object may say whether it is ready.
func (o *object) mayBeReady() bool { return status.MayBeReady(o.Object.GroupVersionKind().GroupKind()) }

// readOnly reports whether the manifest is never applied.
func (o *object) readOnly() bool { return o.options.Update.Type == workv1.UpdateStrategyTypeReadOnly }

// permission is a permission that the executor needs.
func (o *object) permission() executor.Request {
	return executor.Request{Resource: o.key.Resource, Manifest: o.Object, Owned: !o.orphan}
}

// settled reports whether the object is as the agent left it when it applied this manifest.
// The agent cannot know that of an object that is not watched.
func (o *object) settled(live inventory.Object, exists bool) bool {
	return exists && o.applied == o.desired && o.revision == live.Revision && o.watched()
}

// appliedBefore reports whether the manifest was applied before, by this process or
// another.
func (o *object) appliedBefore(h history) bool {
	if o.applied != 0 {
		return o.applied == o.desired
	}
	return h.applied(o)
}

// memory is the part of an object that outlives a pass: the record of the work has it.
type memory struct {
	// applied is the digest of what was applied, and revision the object's after that.
	applied, revision uint64
	// version is the object's when its status was looked at, at observed.
	version  string
	observed time.Time
	// interval is how soon it may be looked at again after a change, and recheck how soon
	// without one; zero for never.
	interval, recheck time.Duration
	// explained is when the agent last looked for the reason that the object is not ready.
	explained time.Time
	// reviewed is when the executor was last found to have its permissions.
	reviewed time.Time
	// gap is the current least time between repairs.
	gap      time.Duration
	repaired time.Time
	// contests are the fields that another writer has changed back after a repair.
	contests []strategy.Contest
}

// unobserve forgets what was observed, so that the next pass reads the object again.
func (m *memory) unobserve() { m.version, m.observed = "", time.Time{} }

// lookAt returns when the status of the object, which has a version now, is to be looked at;
// false for never.
func (m *memory) lookAt(version string) (time.Time, bool) {
	if m.version != version {
		return m.observed.Add(m.interval), true
	}
	return m.observed.Add(m.recheck), m.recheck > 0
}

// repairAt returns when the object may be repaired.
func (m *memory) repairAt() time.Time {
	if m.gap == 0 {
		return time.Time{}
	}
	return m.repaired.Add(m.gap)
}

// repair records a repair of the object, and which fields others had changed. After the
// first one, they change back what was repaired.
func (m *memory) repair(now time.Time, contests []strategy.Contest) {
	switch {
	case m.gap == 0 || now.Sub(m.repaired) > calm:
		m.gap = firstRepair
		m.contests = nil
	default:
		m.gap = min(2*m.gap, mostRepair)
		m.contests = contests
	}
	m.repaired = now
}

// contestedFor returns how much longer it is reported that others change fields back; zero
// or less for no longer.
func (m *memory) contestedFor(now time.Time) time.Duration {
	if len(m.contests) == 0 {
		return 0
	}
	return m.repaired.Add(calm).Sub(now)
}
