package registry

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Hosts is the list of registry hosts.
type Hosts struct {
	configured []string
	changed    []func()

	mu  sync.RWMutex
	all []string
}

// NewHosts returns the list of the hosts that are configured. What changed calls
// must return at once.
func NewHosts(configured []string, changed ...func()) (*Hosts, error) {
	hosts, err := normalize(configured)
	return &Hosts{configured: hosts, all: hosts, changed: changed}, err
}

// List is the list as it is now. It must not be changed.
func (h *Hosts) List() []string {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.all
}

// extend makes found the hosts in addition to those that are configured, and
// reports whether that is a change.
func (h *Hosts) extend(found []string) (changed bool) {
	all := slices.Compact(slices.Sorted(slices.Values(slices.Concat(h.configured, found))))
	h.mu.Lock()
	changed = !slices.Equal(h.all, all)
	h.all = all
	h.mu.Unlock()
	if !changed {
		return false
	}
	for _, call := range h.changed {
		call()
	}
	return true
}

// normalize sorts hosts, leaves out duplicates and checks each.
func normalize(hosts []string) ([]string, error) {
	var errs []error
	for _, host := range hosts {
		errs = append(errs, check(host))
	}
	return slices.Compact(slices.Sorted(slices.Values(hosts))), errors.Join(errs...)
}

// check accepts a host or an IP address, with or without a port and a path. A
// kubelet compares all three with the name of an image.
func check(host string) error {
	u, err := url.Parse("//" + host)
	if err != nil || u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.HasSuffix(u.Host, ":") || !named(u.Hostname()) {
		return fmt.Errorf("%q is not a registry host: write it as in the name of an image, such as registry.example.com:5000", host)
	}
	return nil
}

// named reports whether a host is a DNS name, for any number of which its first
// label may stand, or an IP address.
func named(host string) bool {
	return len(validation.IsDNS1123Subdomain(strings.TrimPrefix(host, "*."))) == 0 || net.ParseIP(host) != nil
}
