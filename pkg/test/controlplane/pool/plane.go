package pool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pause"
	localplane "github.com/kubectl-ocm/kubectl-ocm/pkg/local/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/local/process"
)

// AuditPolicy is a file in the state directory that has the API server write the
// metadata of all requests, once they are answered.
const AuditPolicy = "audit-policy.yaml"

const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules: [{level: Metadata}]
`

// Plane is a running control plane in a directory of its own.
type Plane struct {
	*localplane.ControlPlane

	// Dir is its state directory.
	Dir string

	lock  *os.File
	group *process.Group
	once  sync.Once
	// baseline is the content of the store before the first lease.
	baseline map[string]entry
	store    store
}

// Start starts a control plane of the localkube at binary. The caller closes it.
func Start(ctx context.Context, binary string, configure ...func(*localplane.Config)) (*Plane, error) {
	dir, lock, err := newDir()
	if err != nil {
		return nil, err
	}
	p := &Plane{Dir: dir, lock: lock, group: process.NewGroup(), store: newStore(dir)}
	config := localplane.Config{Dir: dir, Binary: binary}
	for _, change := range configure {
		change(&config)
	}
	p.ControlPlane, err = localplane.New(config, p.group, clock.RealClock{})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, AuditPolicy), []byte(auditPolicy), 0o600)
	}
	if err == nil {
		err = p.Start(ctx)
	}
	if err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// Close stops the control plane and removes its directory.
func (p *Plane) Close() {
	p.once.Do(func() {
		if p.ControlPlane != nil {
			p.ControlPlane.Close()
		}
		p.store.close()
		p.group.Close()
		removeAll(p.Dir)
		_ = p.lock.Close()
	})
}

const (
	settlePoll = 500 * time.Millisecond
	cleanPoll  = 100 * time.Millisecond
	// resets is how often what came back is removed again. A controller that still works
	// on what the last holder left needs one or two of them.
	resets = 20
)

// lastOfAll is made by the controllers that start last in the controller manager.
const lastOfAll = registry + "configmaps/kube-public/kube-root-ca.crt"

// errUnclean says that a control plane did not get back to what it was.
var errUnclean = errors.New("the control plane does not get clean")

// settle waits until a new control plane writes no more, and takes what it has for the baseline.
func (p *Plane) settle(ctx context.Context) error {
	before := map[string]entry{}
	for {
		now, err := p.store.read(ctx, true)
		if err != nil {
			return err
		}
		if _, ok := now[lastOfAll]; ok && len(steady(differences(before, now))) == 0 {
			p.baseline = now
			return nil
		}
		before = now
		if !pause.For(ctx, clock.RealClock{}, settlePoll) {
			return fmt.Errorf("the control plane does not settle: %w", context.Cause(ctx))
		}
	}
}

// reset puts everything back to the baseline, and returns when the API server has followed.
func (p *Plane) reset(ctx context.Context) error {
	var last []string
	for range resets {
		now, err := p.store.read(ctx, false)
		if err != nil {
			return err
		}
		all := differences(p.baseline, now)
		last = steady(all)
		if len(last) == 0 {
			return nil
		}
		changed := slices.DeleteFunc(all, func(key string) bool { return isLease(key) })
		if err := p.store.restore(ctx, p.baseline, changed); err != nil {
			return err
		}
		if err := p.follow(ctx, changed); err != nil {
			return err
		}
		if !pause.For(ctx, clock.RealClock{}, cleanPoll) {
			return context.Cause(ctx)
		}
	}
	return fmt.Errorf("%w: %s", errUnclean, strings.Join(last[:min(len(last), 10)], ", "))
}

// isLease says that an entry is a lease of the control plane's own programs, which renew it.
func isLease(key string) bool {
	return strings.HasPrefix(key, restless[0]) || strings.HasPrefix(key, restless[1])
}
