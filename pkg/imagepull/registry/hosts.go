package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/klog/v2"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/internal/content"
)

// Hosts is the list of registry hosts.
type Hosts struct {
	audience   string
	configured []content.Host
	changed    []func()
	sources    []*Source

	mu  sync.RWMutex
	all []content.Host
}

// NewHosts returns the list of the configured hosts, each as HOST or as HOST=AUDIENCE;
// audience is the default. The functions in changed must return at once.
func NewHosts(configured []string, audience string, changed ...func()) (*Hosts, error) {
	hosts, err := parse(configured, audience)
	return &Hosts{audience: audience, configured: hosts, all: hosts, changed: changed}, err
}

// List is the list as it is now, sorted by name. It must not be changed. It is empty
// until each source has reported: a controller that starts must not take away the
// hosts that it has not found yet.
func (h *Hosts) List() []content.Host {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.all
}

// Source is a source of hosts in addition to the configured ones.
type Source struct {
	hosts *Hosts
	found []content.Host
	known bool
}

// NewSource adds a source, before the first one reports.
func (h *Hosts) NewSource() *Source {
	s := &Source{hosts: h}
	h.sources = append(h.sources, s)
	h.all = nil
	return s
}

// report replaces the hosts that the source has found. If they cannot be used, the
// source has those that it had.
func (s *Source) report(ctx context.Context, found []string) error {
	changed, err := s.hosts.update(s, found)
	if !changed {
		return err
	}
	now := s.hosts.List()
	klog.FromContext(ctx).Info("Registry hosts changed", "hosts", now)
	if len(now) == 0 {
		klog.FromContext(ctx).Info("No registry host is configured; no pull secret is written until there is one")
	}
	for _, call := range s.hosts.changed {
		call()
	}
	return err
}

// update computes the list again and reports whether it changed.
func (h *Hosts) update(s *Source, found []string) (changed bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	before := s.found
	s.known = true
	if s.found, err = parse(found, h.audience); err == nil {
		_, err = h.merged()
	}
	if err != nil {
		s.found = before
	}
	all, _ := h.merged() // What was there before fits together.
	changed = !slices.Equal(h.all, all)
	h.all = all
	return changed, err
}

// merged is the list of all sources, nil while one has not reported.
func (h *Hosts) merged() ([]content.Host, error) {
	all := slices.Clone(h.configured)
	for _, s := range h.sources {
		if !s.known {
			return nil, nil
		}
		all = append(all, s.found...)
	}
	return merge(all)
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
			return nil, fmt.Errorf("%s has two audiences, %q and %q; use one", hosts[i].Name, hosts[i].Audience, hosts[i+1].Audience)
		}
	}
	return hosts, nil
}

// check accepts a host or an IP address, with or without a port and a path. A
// kubelet compares all three with the name of an image.
func check(host string) error {
	u, err := url.Parse("//" + host)
	if err != nil || u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.HasSuffix(u.Host, ":") || !named(u.Hostname()) {
		return fmt.Errorf("%q is not a registry host; use the host of an image name, such as registry.example.com:5000", host)
	}
	return nil
}

// named reports whether a host is a DNS name, optionally with a wildcard as its first
// label, or an IP address.
func named(host string) bool {
	return len(validation.IsDNS1123Subdomain(strings.TrimPrefix(host, "*."))) == 0 || net.ParseIP(host) != nil
}
