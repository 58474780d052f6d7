package agent

import (
	"context"
	"errors"
	"slices"
	"time"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/agent/inventory"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/agent/strategy"
)

// errDone ends a pass early: an event or the requeue starts the next one.
var errDone = errors.New("nothing is left to do")

// pass is one reconciliation of a work: phases over one scope, in their order.
type pass []func(context.Context) error

// run runs the phases until one fails or ends the pass.
func (p pass) run(ctx context.Context) error {
	for _, phase := range p {
		err := phase(ctx)
		if errors.Is(err, errDone) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// applying is the pass over a work that is applied.
func applying(s *scope) pass {
	resolver, reader, cleaner, reporter := &resolver{s}, &reader{s}, &cleaner{s}, &reporter{s}
	writer := &writer{scope: s, reader: reader}
	return pass{
		s.awaitCache, s.applied.read, s.skipUnchanged,
		s.work.ensureFinalizer, resolver.resolve, resolver.awaitWatches,
		s.applied.ensure, s.recall,
		writer.apply, reader.observe, cleaner.clean, reporter.report,
		s.settle,
	}
}

// deleting is the pass over a work that is being deleted. The evictor deletes the objects.
func deleting(s *scope) pass {
	deletion := &deletion{s}
	return pass{
		s.awaitCache, s.applied.read,
		deletion.checkFinalizer, deletion.report, deletion.find, deletion.takeOver, deletion.releaseOrphans, deletion.delete,
	}
}

// scope is the state that the phases of a pass share.
type scope struct {
	works *works
	agent *agent

	work    *hubWork
	applied *appliedWork
	// record is the memory of earlier passes over the work.
	record *record
	// objects are the objects of the manifests, in the order of the spec.
	objects []*object
	// interests are the subscriptions to these objects.
	interests    []inventory.Interest
	history      history
	impersonator *impersonator
	requeue      *requeue
	now          time.Time
	// failures are why the work is not as it must be. The controller backs off.
	failures []error
}

// scope returns the scope of a pass over a work.
func (r *works) scope(work *workv1.ManifestWork) *scope {
	record, requeue, now := r.records.of(work.Name, work.UID), &requeue{}, r.agent.config.Clock.Now()
	onHub := &hubWork{ManifestWork: work, hub: r.hub, record: record}
	return &scope{
		works: r, agent: r.agent, work: onHub, record: record, requeue: requeue, now: now,
		applied:      &appliedWork{managed: &r.agent.managed, work: onHub, spec: r.appliedSpec(work), record: record, requeue: requeue},
		impersonator: &impersonator{agent: r.agent, work: onHub, requeue: requeue, now: now},
	}
}

// awaitCache ends the pass while the cached work is older than the agent's last write.
func (s *scope) awaitCache(context.Context) error {
	if !stale(s.work.ResourceVersion, s.record.written) {
		return nil
	}
	s.requeue.retry(cacheDelay)
	return errDone
}

// skipUnchanged ends the pass if nothing has happened since the last one that left nothing
// to do: the usual case after the agent's own writes, decided without decoding a manifest.
func (s *scope) skipUnchanged(context.Context) error {
	if s.quiet() && s.unchanged() {
		return errDone
	}
	s.record.quiet = 0
	return nil
}

// quiet reports whether the last pass left nothing to do for this generation.
func (s *scope) quiet() bool {
	return s.record.quiet != 0 && s.record.quiet == s.work.Generation && slices.Contains(s.work.Finalizers, names.FinalizerManifestWork) &&
		s.applied.exists() && !s.applied.deleting() && s.applied.UID == s.record.owner
}

// unchanged reports whether every object is as the agent left it, and neither its status nor
// the executor is due.
func (s *scope) unchanged() bool {
	for key, m := range s.record.objects {
		live, exists := s.agent.inventory.Object(key)
		if !exists || live.Revision != m.revision {
			return false
		}
		if left, reviewed := s.impersonator.nextReview(m); reviewed {
			if left <= 0 {
				return false
			}
			s.requeue.recheck(left)
		}
		at, due := m.lookAt(live.ResourceVersion)
		if m.version == "" || !due {
			continue
		}
		left := at.Sub(s.now)
		if left <= 0 {
			return false
		}
		s.requeue.recheck(left)
	}
	return true
}

// recall gives the objects what earlier passes remember of them, as far as it is still true.
func (s *scope) recall(context.Context) error {
	s.record.begin(s.applied.UID, s.work.Generation)
	for _, o := range s.objects {
		if o.mapped() {
			o.memory = s.record.memory(o.key)
		}
	}
	return nil
}

// subscribe subscribes to the objects of the work and to further ones that were applied
// before, to hear of the end of their deletion.
func (s *scope) subscribe(recorded []workv1.AppliedManifestResourceMeta) {
	wanted := make(map[inventory.Key]bool, len(s.interests))
	for _, interest := range s.interests {
		wanted[interest.Key] = true
	}
	all := slices.Clone(s.interests)
	for _, resource := range recorded {
		if key := keyOf(resource); !wanted[key] {
			all = append(all, inventory.Interest{Key: key})
		}
	}
	s.agent.inventory.Subscribe(workPrefix+s.work.Name, all)
}

// request is the request to apply an object that may exist.
func (s *scope) request(o *object) strategy.Request {
	return strategy.Request{
		Resource: o.key.Resource, Manifest: o.Object, Owner: owner(s.applied.AppliedManifestWork), Owned: !o.orphan,
		Update: o.options.Update, Settled: o.appliedBefore(s.history),
	}
}

// settle remembers that the work is as it must be, or returns why it is not.
func (s *scope) settle(context.Context) error {
	s.record.denials = s.requeue.backOff(s.record.denials, s.work.Name)
	if err := errors.Join(s.failures...); err != nil {
		return err
	}
	s.record.seen = s.work.Generation
	if !s.requeue.unfinished {
		s.record.quiet = s.work.Generation
	}
	wanted := make(map[inventory.Key]bool, len(s.objects))
	for _, o := range s.objects {
		wanted[o.key] = o.mapped()
	}
	for key := range s.record.objects {
		if !wanted[key] {
			delete(s.record.objects, key)
			s.agent.slots.free(key)
		}
	}
	return nil
}
