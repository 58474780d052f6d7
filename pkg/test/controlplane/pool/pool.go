package pool

import (
	"context"
	"encoding/json"
	"runtime"
	"sync"
	"time"

	localplane "github.com/kubectl-ocm/kubectl-ocm/pkg/local/controlplane"
)

const (
	// startTimeout is far above the usual five seconds: the machine may be busy.
	startTimeout = 5 * time.Minute
	resetTimeout = 2 * time.Minute
	// maxIdle is how many control planes wait for a lease. One at rest takes 2 % of a
	// processor, 400 MB, and 7 of the 128 inotify instances that a user has by default.
	maxIdle = 5
)

// Pool leases control planes. It starts one when all that it has of a kind are leased.
// Its methods may be called from any goroutine.
type Pool struct {
	binary string
	report func(error)
	work   sync.WaitGroup

	mu     sync.Mutex
	change *sync.Cond
	// kinds are by their configurations.
	kinds           map[string]*kind
	planes          map[*Plane]*kind
	starting, idle  int
	closed          bool
	started, leased int
}

// kind is the control planes of one configuration.
type kind struct {
	config localplane.Config
	// ready are for the next ones who wait: idle control planes, and failures to start one.
	ready []result
	// coming counts the control planes that start or are reset; waiting counts the
	// leases that wait for one.
	coming, waiting int
}

type result struct {
	plane *Plane
	err   error
}

// New is an empty pool of control planes of the localkube at binary. Report learns of
// control planes that did not get clean and were stopped.
func New(binary string, report func(error)) *Pool {
	p := &Pool{binary: binary, report: report, kinds: map[string]*kind{}, planes: map[*Plane]*kind{}}
	p.change = sync.NewCond(&p.mu)
	return p
}

// Lease returns a control plane with a configuration, whose directory and program the
// pool sets. It is the caller's alone until it is given to Release.
func (p *Pool) Lease(config localplane.Config) (*Plane, error) {
	key, err := json.Marshal(config)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	k := p.kinds[string(key)]
	if k == nil {
		k = &kind{config: config}
		p.kinds[string(key)] = k
	}
	k.waiting++
	for len(k.ready) == 0 {
		// As many start at once as there are processors: more would only all be later.
		if k.waiting > k.coming && p.starting < runtime.GOMAXPROCS(0) {
			p.starting++
			k.coming++
			p.work.Go(func() { p.start(k) })
		}
		p.change.Wait()
	}
	k.waiting--
	next := k.ready[0]
	k.ready = k.ready[1:]
	if next.plane != nil {
		p.idle--
		p.leased++
	}
	return next.plane, next.err
}

// start adds a new control plane.
func (p *Pool) start(k *kind) {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout) //nolint:forbidigo // the pool outlives who waits
	defer cancel()
	plane, err := Start(ctx, p.binary, func(c *localplane.Config) {
		dir, binary := c.Dir, c.Binary
		*c = k.config
		c.Dir, c.Binary = dir, binary
	})
	if err == nil {
		if err = plane.settle(ctx); err != nil {
			plane.Close()
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.starting--
	k.coming--
	if err != nil {
		k.ready = append(k.ready, result{err: err})
	} else {
		p.started++
		p.planes[plane] = k
		p.add(k, plane)
	}
	p.change.Broadcast()
}

func (p *Pool) add(k *kind, plane *Plane) {
	k.ready = append(k.ready, result{plane: plane})
	p.idle++
}

// Release takes back a control plane in any state, and resets it in the background.
func (p *Pool) Release(plane *Plane) {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := p.planes[plane]
	k.coming++
	p.work.Go(func() { p.reset(k, plane) })
}

func (p *Pool) reset(k *kind, plane *Plane) {
	ctx, cancel := context.WithTimeout(context.Background(), resetTimeout) //nolint:forbidigo // the pool outlives who returned it
	defer cancel()
	err := plane.reset(ctx)

	p.mu.Lock()
	defer p.mu.Unlock()
	k.coming--
	if err != nil && !p.closed {
		p.report(err)
	}
	if err != nil || p.closed {
		p.stop(plane)
	} else {
		p.add(k, plane)
		p.shrink(k)
	}
	p.change.Broadcast()
}

// shrink stops what is idle and too many, and rather of any other kind than of this one.
func (p *Pool) shrink(this *kind) {
	if p.idle <= maxIdle {
		return
	}
	for _, k := range p.kinds {
		if k != this && p.stopIdle(k) {
			return
		}
	}
	p.stopIdle(this)
}

// stopIdle stops an idle control plane, unless a caller of Lease is about to get it.
func (p *Pool) stopIdle(k *kind) bool {
	if len(k.ready) <= k.waiting || k.ready[0].plane == nil {
		return false
	}
	p.stop(k.ready[0].plane)
	k.ready = k.ready[1:]
	p.idle--
	return true
}

func (p *Pool) stop(plane *Plane) {
	delete(p.planes, plane)
	p.work.Go(plane.Close)
}

// Counts are how many control planes were started, and how often one was leased.
func (p *Pool) Counts() (started, leased int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.started, p.leased
}

// Close stops all control planes, leased ones included.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	for plane := range p.planes {
		p.work.Go(plane.Close)
	}
	p.mu.Unlock()
	p.work.Wait()
}
