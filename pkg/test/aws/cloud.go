package aws

import (
	"crypto/rand"
	"sync"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/aws/interceptor"
)

// Cloud is a running emulator. Its methods may be called from any goroutine of a
// test.
type Cloud struct {
	proxy      *interceptor.Proxy
	clock      clock.PassiveClock
	operations map[string]operation

	mu          sync.Mutex
	roles       map[string]*role
	managed     map[string]string
	providers   map[string]*provider
	clusters    map[string]*cluster
	keys        map[string]*principal
	accounts    map[account]bool
	roleQuota   int
	advanced    time.Duration
	skew        time.Duration
	propagation propagation
	injections  []*Injection
	calls       []Call
	// answered counts all calls, also those that are forgotten.
	answered int
}

// operation answers one operation of a service.
type operation func(*request) (any, error)

// Start starts an emulator without accounts, which serves until the test ends.
func Start(tb testing.TB) *Cloud {
	tb.Helper()
	c := &Cloud{
		clock:     clock.RealClock{},
		roles:     map[string]*role{},
		managed:   map[string]string{},
		providers: map[string]*provider{},
		clusters:  map[string]*cluster{},
		keys:      map[string]*principal{},
		accounts:  map[account]bool{},
		roleQuota: defaultRoleQuota,
	}
	c.operations = c.allOperations()
	c.proxy = interceptor.Start(tb, intercepted, c)
	return c
}

// ProxyURL returns the value for HTTPS_PROXY.
func (c *Cloud) ProxyURL() string { return c.proxy.URL }

// CAFile is the file with the CA that signed for all hosts of AWS.
func (c *Cloud) CAFile() string { return c.proxy.CAFile }

// CA is that CA in PEM.
func (c *Cloud) CA() []byte { return c.proxy.CA }

// Environment returns the variables that make a program find the emulator under the
// names of AWS. Go programs read SSL_CERT_FILE, the AWS CLI reads AWS_CA_BUNDLE; both,
// and the SDK, ask for instance metadata unless they are configured not to.
func (c *Cloud) Environment() []string {
	return []string{
		"HTTPS_PROXY=" + c.ProxyURL(), "SSL_CERT_FILE=" + c.CAFile(), "AWS_CA_BUNDLE=" + c.CAFile(),
		"AWS_EC2_METADATA_DISABLED=true",
	}
}

// RefusedHosts lists the hosts that a client requested through the proxy and that are not
// of AWS.
func (c *Cloud) RefusedHosts() []string { return c.proxy.Refused() }

// now is the time of sessions, tokens and roles.
func (c *Cloud) now() time.Time { return c.clock.Now().Add(c.advanced) }

// Advance moves the clock for the expiry of sessions and web identity tokens and for
// the visibility of new roles. Signatures are checked by another clock; see Skew.
func (c *Cloud) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.advanced += d
}

// Skew sets how far the clock that signatures are checked by is ahead of this
// machine's.
func (c *Cloud) Skew(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.skew = d
}

// unique is an identifier as AWS makes them: its kind and random characters.
func unique(kind string, length int) string {
	return kind + (rand.Text() + rand.Text() + rand.Text())[:length]
}
