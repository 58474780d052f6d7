package extauthz

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz/authorizer"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz/denial"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz/exchange"
)

// maxForbidden bounds how many targets are reported that may not be minted for.
const maxForbidden = 100

// forbidden is an exchanger that remembers for which targets the hub does not
// let us mint: the caller learns a status only, and what is missing is a Role.
type forbidden struct {
	authorizer.Exchanger

	// any is set while there is one, so that the others need no lock.
	any     atomic.Bool
	mu      sync.Mutex
	targets map[string]string
}

// Exchange implements authorizer.Exchanger.
func (f *forbidden) Exchange(ctx context.Context, r exchange.Request) (exchange.Token, bool, error) {
	token, cached, err := f.Exchanger.Exchange(ctx, r)
	if missing := err != nil && denial.Of(err).Reason == denial.HubForbidden; missing || err == nil && f.any.Load() {
		f.note(r.Target.Namespace+"/"+r.Target.Name, err)
	}
	return token, cached, err
}

func (f *forbidden) note(target string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case err == nil:
		delete(f.targets, target)
	case len(f.targets) < maxForbidden:
		f.targets[target] = denial.Of(err).Detail
	}
	f.any.Store(len(f.targets) > 0)
}

// status describes the targets, by name.
func (f *forbidden) status() []ForbiddenStatus {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make([]ForbiddenStatus, 0, len(f.targets))
	for _, target := range slices.Sorted(maps.Keys(f.targets)) {
		out = append(out, ForbiddenStatus{Target: target, Error: f.targets[target]})
	}
	return out
}
