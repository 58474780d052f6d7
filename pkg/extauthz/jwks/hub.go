package jwks

import (
	"errors"
	"fmt"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwk"
)

// hub is what clusters publish about themselves, and who is believed.
type hub struct {
	// pending until everything that is published is known.
	pending bool
	// entries are the configured clusters with the source Hub, and Everyone.
	entries   map[string]Cluster
	published map[string]*publication
}

// publication is what one cluster publishes.
type publication struct {
	issuer string
	set    jwk.Set
	at     time.Time
	err    error
}

// Publish takes what a cluster that the hub has accepted publishes. The caller
// vouches for the cluster's name. Data that cannot be used leaves what the
// cluster published before in force. The error is for whoever looks after the
// cluster; it is a *SharedKeyError if the keys were taken note of, but one of
// them stands for another cluster too and is refused.
func (s *Store) Publish(cluster, issuer string, jwks []byte) error {
	set, err := jwk.Parse(jwks)
	if problem := checkIssuer(issuer); problem != nil {
		err = problem
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.hub.published[cluster]
	if p == nil {
		p = &publication{}
		s.hub.published[cluster] = p
	}
	s.tally.refreshed(cluster, err)
	if p.err = err; err != nil {
		s.log.Info("A cluster publishes keys that cannot be used", "cluster", cluster, "problem", err.Error())
		return fmt.Errorf("cluster %s: %w", cluster, err)
	}
	changed := p.issuer != issuer || !equalKeys(p.set.Keys, set.Keys)
	p.issuer, p.set, p.at = issuer, set, s.clock.Now()
	if changed {
		s.rebuildPublished()
		s.log.Info("Took the keys that a cluster publishes", "cluster", cluster, "issuer", issuer, "keys", ids(set.Keys))
	}
	if shared := s.refused[cluster]; len(shared) > 0 {
		return &shared[0]
	}
	return nil
}

// Withdraw forgets what a cluster published, because it publishes nothing any
// more or is no longer accepted. The next request with one of its tokens fails.
func (s *Store) Withdraw(cluster string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.hub.published[cluster]; !ok {
		return
	}
	delete(s.hub.published, cluster)
	s.rebuildPublished()
	s.log.Info("Dropped the keys that a cluster published", "cluster", cluster)
}

// rebuildPublished is rebuild after a change of what is published. At the
// beginning that is put off until HubSynced: once instead of a thousand times.
func (s *Store) rebuildPublished() {
	if !s.hub.pending {
		s.rebuild()
	}
}

// HubSynced says that everything that was published when the process started
// has been given to Publish. With Config.Hub, published keys count from then on.
func (s *Store) HubSynced() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hub.pending {
		s.hub.pending = false
		s.rebuild()
	}
}

// admits returns the entry under which the publication of cluster is taken. A
// cluster with a source of its own needs none.
func (h *hub) admits(cluster string, members map[string]*member) (Cluster, bool) {
	if _, ok := members[cluster]; ok {
		return Cluster{}, false
	}
	entry, ok := h.entries[cluster]
	if !ok {
		entry, ok = h.entries[Everyone]
	}
	return entry, ok
}

// taken returns the keys of p that entry lets in.
func (p *publication) taken(entry Cluster) (jwk.Set, error) {
	if entry.Issuer != "" && entry.Issuer != p.issuer && p.issuer != "" {
		return jwk.Set{}, fmt.Errorf("it publishes the issuer %q and is configured with %q", p.issuer, entry.Issuer)
	}
	set, err := pinned(p.set, entry.Pins)
	if p.err != nil {
		err = p.err
	}
	return set, err
}

func (h *hub) claims(members map[string]*member) []claim {
	all := make([]claim, 0, len(h.published)+len(members))
	for cluster, p := range h.published {
		entry, ok := h.admits(cluster, members)
		if !ok || p.issuer == "" {
			continue
		}
		if set, _ := p.taken(entry); len(set.Keys) > 0 {
			all = append(all, claim{cluster: cluster, issuer: p.issuer, legacy: entry.Legacy, keys: set.Keys, published: true})
		}
	}
	return all
}

func (h *hub) status(members map[string]*member) []Status {
	var all []Status
	for cluster, entry := range h.entries {
		if h.published[cluster] == nil && cluster != Everyone {
			status := Status{Cluster: cluster, Issuer: entry.Issuer, Source: sourceHub, Tried: !h.pending}
			if !h.pending {
				status.Err = errors.New("the cluster publishes no keys, or the hub has not accepted it")
			}
			all = append(all, status)
		}
	}
	for cluster, p := range h.published {
		entry, ok := h.admits(cluster, members)
		if !ok {
			continue
		}
		set, err := p.taken(entry)
		all = append(all, Status{
			Cluster: cluster, Issuer: p.issuer, Source: sourceHub, KeyIDs: ids(set.Keys),
			Ignored: set.Reasons, Tried: true, LastSuccess: p.at, Err: err,
		})
	}
	return all
}
