package jwks

import (
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwk"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/keytrust"
)

// hub is the hub's list of clusters, with their publications.
type hub struct {
	// decides is set if the hub decides which clusters are accepted at all.
	decides bool
	// pending until everything that the hub knows has been given to Observe.
	pending bool
	// entries are the configured clusters with the source Hub, and Everyone.
	entries map[string]Cluster
	members map[string]*publication
}

// publication is a cluster of the hub, with what it publishes.
type publication struct {
	seen keytrust.Candidate
	// proven is the part of it that is trusted as far as the cluster alone matters.
	proven keytrust.Publication
	at     time.Time
	err    error
}

func (p *publication) publishes() bool {
	return p.seen.Data != nil && p.seen.Cluster.Silent().Reason == ""
}

// Observe takes what the hub knows about a cluster and what the cluster
// publishes. The caller vouches for its name. What counts of it package keytrust
// decides; keys of a cluster that the hub denies do not count, from any
// source. The error is for the cluster's administrator; it is a
// *SharedKeyError if a key is refused because it is another cluster's as well.
func (s *Store) Observe(c keytrust.Candidate) error {
	s.mu.Lock()
	p := s.hub.members[c.Cluster.Name]
	same := p != nil && p.seen.Cluster == c.Cluster && (p.seen.Data == nil) == (c.Data == nil) && maps.Equal(p.seen.Data, c.Data)
	s.mu.Unlock()
	if same {
		return s.complaint(c.Cluster.Name)
	}
	fresh := &publication{seen: c}
	if fresh.publishes() {
		fresh.proven, fresh.err = keytrust.Read(c.Cluster, c.Data)
		if fresh.err == nil && len(fresh.proven.Keys) == 0 {
			fresh.err = errors.New("the cluster has not proven that it signs tokens with the keys that it publishes")
		}
	}
	return s.take(fresh)
}

// take makes p what is known about its cluster.
func (s *Store) take(p *publication) error {
	cluster := p.seen.Cluster.Name
	s.mu.Lock()
	before := s.hub.members[cluster]
	if before == nil {
		before = &publication{}
	}
	s.hub.members[cluster] = p
	if p.err == nil {
		p.at = s.clock.Now()
	}
	if p.publishes() {
		s.tally.refreshed(cluster, p.err)
	}
	if p.err != nil {
		s.log.Info("A cluster publishes keys that cannot be used", "cluster", cluster, "problem", p.err.Error())
	}
	changed := before.proven.Issuer != p.proven.Issuer || !equalKeys(before.proven.Keys, p.proven.Keys)
	if changed || before.seen.Cluster.Denied() != p.seen.Cluster.Denied() {
		s.updatePublished(cluster)
	}
	s.mu.Unlock()
	if changed {
		s.log.Info("The keys that a cluster publishes changed", "cluster", cluster, "issuer", p.proven.Issuer,
			"keys", ids(p.proven.Keys), "unproven", p.proven.Unproven, "dropped", dropped(before.proven.Keys, p.proven.Keys))
	}
	return s.complaint(cluster)
}

// complaint is why keys of a cluster that publishes some are refused.
func (s *Store) complaint(cluster string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.hub.members[cluster]; p != nil && p.err != nil {
		return fmt.Errorf("cluster %s: %w", cluster, p.err)
	}
	if shared := s.index.refused(cluster); len(shared) > 0 {
		return &shared[0]
	}
	return nil
}

// Forget drops a cluster that the hub does not have any more. The next request
// with one of its tokens fails.
func (s *Store) Forget(cluster string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hub.members[cluster] == nil {
		return
	}
	delete(s.hub.members, cluster)
	if s.members[cluster] == nil {
		s.tally.forget(cluster)
	}
	s.updatePublished(cluster)
	s.log.Info("Dropped the keys of a cluster that the hub does not have any more", "cluster", cluster)
}

// updatePublished is update after a change on the hub. At the beginning that is
// put off until HubSynced: once instead of a thousand times.
func (s *Store) updatePublished(cluster string) {
	if !s.hub.pending {
		s.update(cluster)
	}
}

// HubSynced says that everything that the hub had when the process started has
// been given to Observe. With Config.Hub, no key counts before.
func (s *Store) HubSynced() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hub.pending {
		s.hub.pending = false
		s.updateAll()
	}
}

// denied says why no key of cluster counts, from any source. A
// store that no hub feeds denies no cluster.
func (h *hub) denied(cluster string) keytrust.Rejection {
	if !h.decides {
		return keytrust.Rejection{}
	}
	if p := h.members[cluster]; p != nil {
		return p.seen.Cluster.Denied()
	}
	return keytrust.Cluster{}.Denied()
}

// entry returns that under which the publication of cluster is taken, if it has no
// source of its own.
func (h *hub) entry(cluster string) (Cluster, bool) {
	entry, ok := h.entries[cluster]
	if !ok {
		entry, ok = h.entries[Everyone]
	}
	return entry, ok
}

// taken returns the keys of p that entry lets in.
func (p *publication) taken(entry Cluster) (jwk.Set, error) {
	if entry.Issuer != "" && entry.Issuer != p.proven.Issuer && p.proven.Issuer != "" {
		return jwk.Set{}, fmt.Errorf("it publishes the issuer %q and is configured with %q", p.proven.Issuer, entry.Issuer)
	}
	set := jwk.Set{Keys: p.proven.Keys, Reasons: p.proven.Ignored}
	for _, id := range p.proven.Unproven {
		set.Reasons = append(set.Reasons, "key "+id+" is not proven: the cluster has not signed with it yet")
	}
	set, err := pinned(set, entry.Pins)
	if p.err != nil {
		err = p.err
	}
	return set, err
}

// claim returns the publication of a cluster without a source of its own, nil if
// nothing of it is accepted. Before the whole hub is known, it accepts nothing.
func (h *hub) claim(cluster string) *claim {
	p := h.members[cluster]
	if p == nil || p.proven.Issuer == "" || h.pending {
		return nil
	}
	entry, ok := h.entry(cluster)
	if !ok {
		return nil
	}
	support := keytrust.Proven
	if len(entry.Pins) > 0 {
		support = keytrust.Named
	}
	set, _ := p.taken(entry)
	if len(set.Keys) == 0 {
		return nil
	}
	return &claim{cluster: cluster, issuer: p.proven.Issuer, legacy: entry.Legacy, keys: set.Keys, support: support}
}

func (h *hub) status(members map[string]*member) []Status {
	var all []Status
	for cluster, entry := range h.entries {
		if p := h.members[cluster]; (p == nil || !p.publishes()) && cluster != Everyone {
			status := Status{Cluster: cluster, Issuer: entry.Issuer, Source: sourceHub, Tried: !h.pending}
			if !h.pending {
				status.Err = h.missing(cluster)
			}
			all = append(all, status)
		}
	}
	for cluster, p := range h.members {
		entry, ok := h.entry(cluster)
		if !ok || !p.publishes() || members[cluster] != nil {
			continue
		}
		set, err := p.taken(entry)
		all = append(all, Status{
			Cluster: cluster, Issuer: p.proven.Issuer, Source: sourceHub, KeyIDs: ids(set.Keys),
			Ignored: set.Reasons, Tried: true, LastSuccess: p.at, Err: err,
		})
	}
	return all
}

// missing says why a cluster that should publish its keys has none.
func (h *hub) missing(cluster string) error {
	silent := keytrust.Cluster{}.Silent()
	if p := h.members[cluster]; p != nil {
		silent = p.seen.Cluster.Silent()
	}
	if silent.Reason != "" {
		return errors.New(silent.Message)
	}
	return errors.New("the cluster publishes no keys")
}
