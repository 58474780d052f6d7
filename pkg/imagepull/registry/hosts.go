package registry

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/internal/content"
)

// Hosts is the list of registry hosts.
type Hosts struct {
	audience   string
	configured []content.Host
	changed    []func()

	mu  sync.RWMutex
	all []content.Host
}

// NewHosts returns the list of the hosts that are configured, each as HOST or as
// HOST=AUDIENCE; audience is that of the others. What changed calls must return at
// once.
func NewHosts(configured []string, audience string, changed ...func()) (*Hosts, error) {
	hosts, err := parse(configured, audience)
	return &Hosts{audience: audience, configured: hosts, all: hosts, changed: changed}, err
}

// List is the list as it is now, sorted by name. It must not be changed.
func (h *Hosts) List() []content.Host {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.all
}

// extend makes found the hosts in addition to those that are configured, and
// reports whether that is a change.
func (h *Hosts) extend(found []string) (changed bool, err error) {
	more, err := parse(found, h.audience)
	if err != nil {
		return false, err
	}
	all, err := merge(slices.Concat(h.configured, more))
	if err != nil {
		return false, err
	}
	h.mu.Lock()
	changed = !slices.Equal(h.all, all)
	h.all = all
	h.mu.Unlock()
	if !changed {
		return false, nil
	}
	for _, call := range h.changed {
		call()
	}
	return true, nil
}

// parse reads hosts.
func parse(texts []string, audience string) ([]content.Host, error) {
	var errs []error
	hosts := make([]content.Host, 0, len(texts))
	for _, text := range texts {
		name, own, ok := strings.Cut(text, "=")
		if !ok {
			own = audience
		}
		errs = append(errs, check(name))
		hosts = append(hosts, content.Host{Name: name, Audience: own})
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return merge(hosts)
}

// merge sorts hosts and leaves out duplicates.
func merge(hosts []content.Host) ([]content.Host, error) {
	slices.SortFunc(hosts, func(a, b content.Host) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Audience, b.Audience))
	})
	hosts = slices.Compact(hosts)
	for i := range len(hosts) - 1 {
		if hosts[i].Name == hosts[i+1].Name {
			return nil, fmt.Errorf("%s has two audiences, %q and %q: name it with one", hosts[i].Name, hosts[i].Audience, hosts[i+1].Audience)
		}
	}
	return hosts, nil
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
