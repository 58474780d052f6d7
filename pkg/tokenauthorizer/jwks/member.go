package jwks

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwk"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/keytrust"
)

// When sources are read.
const (
	maxLife = time.Hour   // The longest and
	minLife = time.Minute // the shortest time between two refreshes.
	// filePoll is the interval of checking a file.
	filePoll = 5 * time.Second
	// retryFirst and retryLast bound the time to the next try after a failure.
	retryFirst = 5 * time.Second
	retryLast  = 5 * time.Minute
	// unknownEvery and unknownBurst limit the reads that unknown key ids cause.
	unknownEvery = 30 * time.Second
	unknownBurst = 2
)

// The kinds of sources, in Status.
const (
	sourceInline    = "inline"
	sourceFile      = "file"
	sourceURI       = "uri"
	sourceDiscovery = "discovery"
	sourceHub       = "hub"
)

// member is a cluster with a source of its own. The lock of its Store guards it.
type member struct {
	config Cluster
	set    jwk.Set
	// tried is set once the source was read, lastSuccess when that went well
	// last, and err when it did not the last time.
	tried       bool
	lastSuccess time.Time
	err         error
	failures    int
	// read is the number of its last read.
	read uint64
	// next is when to read it again, zero for never; flight is while it is read.
	next    time.Time
	flight  *flight
	limiter *rate.Limiter
}

// flight is one read of a source, shared by all who wait for it.
type flight struct {
	done   chan struct{}
	cancel context.CancelFunc
}

// reading is the result of reading a source.
type reading struct {
	set jwk.Set
	// life is for how long the source says that it will not change.
	life time.Duration
	err  error
}

// successor returns the member for config: m itself if nothing changed, one with m's
// keys if the source is the same, else a new one. m may be nil.
func (m *member) successor(config Cluster, now time.Time) *member {
	if m != nil && reflect.DeepEqual(m.config, config) {
		return m
	}
	fresh := &member{config: config, limiter: rate.NewLimiter(rate.Every(unknownEvery), unknownBurst)}
	if config.Source.kind() != sourceInline {
		fresh.next = now
	}
	if m != nil && m.config.Issuer == config.Issuer && samePlace(m.config.Source, config.Source) {
		fresh.set, _ = pinned(m.set, config.Pins)
		fresh.tried, fresh.lastSuccess = m.tried, m.lastSuccess
	}
	return fresh
}

// samePlace says whether two sources differ at most in how they are reached.
func samePlace(a, b Source) bool {
	a.CA, a.CAFile, a.Auth = b.CA, b.CAFile, b.Auth
	return reflect.DeepEqual(a, b)
}

// abandon ends what is under way for a member that is no longer configured.
func (m *member) abandon() {
	if m.flight != nil {
		m.flight.cancel()
	}
}

func (m *member) claim() *claim {
	c := &claim{cluster: m.config.Name, issuer: m.config.Issuer, legacy: m.config.Legacy, keys: m.set.Keys, support: m.config.support()}
	if m.config.Source.kind() != sourceInline {
		c.source = m
	}
	return c
}

// support returns the evidence for the keys of a source. A server's owner decides about
// its keys; a key in the configuration, in a file next to it, or pinned there is an
// administrator's.
func (c Cluster) support() keytrust.Support {
	if kind := c.Source.kind(); kind == sourceInline || kind == sourceFile || len(c.Pins) > 0 {
		return keytrust.Named
	}
	return keytrust.Served
}

func (m *member) status() Status {
	return Status{
		Cluster: m.config.Name, Issuer: m.config.Issuer, Source: m.config.Source.kind(),
		KeyIDs: ids(m.set.Keys), Ignored: slices.Clone(m.set.Reasons), Tried: m.tried,
		LastSuccess: m.lastSuccess, NextRefresh: m.next, Err: m.err,
	}
}

// staleAt is when the keys are too old to be used.
func (m *member) staleAt() time.Time {
	life := m.config.StaleFor
	if life == 0 {
		life = DefaultStaleFor
	}
	return m.lastSuccess.Add(life)
}

// succeed takes what was read and says whether the keys differ.
func (m *member) succeed(r reading, now time.Time, log logr.Logger) bool {
	before, failing := m.set.Keys, m.err != nil
	m.set, m.lastSuccess, m.err, m.failures = r.set, now, nil, 0
	switch m.config.Source.kind() {
	case sourceInline:
	case sourceFile:
		m.next = now.Add(filePoll)
	default:
		m.next = now.Add(jitter(min(max(r.life, minLife), maxLife)))
	}
	changed := !equalKeys(before, r.set.Keys)
	switch {
	case changed:
		log.Info("Took new keys", "keys", ids(r.set.Keys), "dropped", dropped(before, r.set.Keys))
	case failing:
		log.Info("Keys can be read again", "keys", ids(r.set.Keys))
	}
	return changed
}

// fail notes a failure and says whether the keys are gone with it.
func (m *member) fail(err error, now time.Time, log logr.Logger) bool {
	if m.err == nil {
		log.Info("Keys cannot be read", "problem", err.Error(), "keys", ids(m.set.Keys))
	}
	m.err = err
	m.failures++
	m.next = now.Add(m.pause())
	if len(m.set.Keys) == 0 {
		return false
	}
	end := m.staleAt()
	if now.Before(end) {
		if end.Before(m.next) {
			m.next = end
		}
		return false
	}
	log.Info("Dropped keys that could not be read for too long", "lastSuccess", m.lastSuccess, "dropped", ids(m.set.Keys))
	m.set = jwk.Set{}
	return true
}

// pause is the time to the next try after a failure.
func (m *member) pause() time.Duration {
	if m.config.Source.kind() == sourceFile {
		return filePoll
	}
	return credential.Backoff{First: retryFirst, Most: retryLast}.Delay(m.failures, m.config.Name)
}

func (s Source) kind() string {
	switch {
	case s.Hub:
		return sourceHub
	case s.File != "":
		return sourceFile
	case s.URI != "":
		return sourceURI
	case s.Discovery != nil:
		return sourceDiscovery
	default:
		return sourceInline
	}
}

// errPinned says that pins left nothing.
var errPinned = errors.New("none of the keys is pinned")

// pinned returns set without what pins, if there are any, do not name.
func pinned(set jwk.Set, pins []string) (jwk.Set, error) {
	if len(pins) == 0 || len(set.Keys) == 0 {
		return set, nil
	}
	kept := jwk.Set{Ignored: set.Ignored, Reasons: slices.Clone(set.Reasons)}
	for _, key := range set.Keys {
		if slices.Contains(pins, key.ID) || slices.Contains(pins, key.Thumbprint) {
			kept.Keys = append(kept.Keys, key)
			continue
		}
		kept.Ignored++
		kept.Reasons = append(kept.Reasons, "key "+key.ID+" is not pinned")
	}
	if len(kept.Keys) == 0 {
		return jwk.Set{}, errPinned
	}
	return kept, nil
}

func equalKeys(a, b []jwk.Key) bool { return slices.EqualFunc(a, b, same) }

func ids(keys []jwk.Key) []string {
	names := make([]string, 0, len(keys))
	for _, key := range keys {
		names = append(names, key.ID)
	}
	return names
}
