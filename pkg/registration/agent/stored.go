package agent

import (
	"slices"
	"sync"
	"time"
)

// storedCredentials are the credentials that this process stored last, by fingerprint: any other
// credential in the Secret ends the connection. It also has the time at which this
// process obtained the newest.
type storedCredentials struct {
	mu           sync.Mutex
	fingerprints []string
	obtained     string
	at           time.Time
}

func (c *storedCredentials) set(fingerprints ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fingerprints = fingerprints
}

func (c *storedCredentials) contains(fingerprint string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Contains(c.fingerprints, fingerprint)
}

func (c *storedCredentials) setObtained(fingerprint string, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.obtained, c.at = fingerprint, at
}

// since returns when this process obtained a credential; false if it did not.
func (c *storedCredentials) since(fingerprint string) (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at, c.obtained != "" && c.obtained == fingerprint
}

// sameConnection returns a function that reports whether the connection of s remains
// valid: its credential is stored and valid, and is for the same hub.
func (a *Agent) sameConnection(s *snapshot) func(*snapshot) bool {
	a.stored.set(s.fingerprint())
	return func(now *snapshot) bool {
		_, usable := now.usable(a.config.Clock.Now())
		return usable && now.identity == s.identity && now.hub.SameServer(*s.hub) && a.stored.contains(now.fingerprint())
	}
}
