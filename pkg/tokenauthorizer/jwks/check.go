package jwks

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwk"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/keytrust"
)

// check reports whether clusters can be configured, and returns the readings of the
// sources that need no network. A file that cannot be read is not an error here: it may
// appear later, as the answer of a server may.
func check(clusters []Cluster) (map[string]reading, error) {
	readings := make(map[string]reading)
	seen := make(map[string]bool, len(clusters))
	for _, cluster := range clusters {
		if seen[cluster.Name] {
			return nil, fmt.Errorf("cluster %q is configured twice", cluster.Name)
		}
		seen[cluster.Name] = true
		if err := cluster.Check(); err != nil {
			return nil, fmt.Errorf("cluster %q: %w", cluster.Name, err)
		}
		switch cluster.Source.kind() {
		case sourceInline:
			set, err := jwk.Parse(cluster.Source.Inline)
			if err == nil {
				_, err = pinned(set, cluster.Pins)
			}
			if err != nil {
				return nil, fmt.Errorf("cluster %q: inline keys: %w", cluster.Name, err)
			}
			readings[cluster.Name] = reading{set: set}
		case sourceFile:
			readings[cluster.Name] = readFile(cluster.Source.File)
		}
	}
	return readings, exclusive(clusters, readings)
}

// Conflicts finds the clusters with inline keys that are another one's as well, under
// an issuer that both have: a token of one could be a token of the other. Keys that
// cannot be read conflict with none.
func Conflicts(clusters []Cluster) map[string][]SharedKeyError {
	readings := make(map[string]reading, len(clusters))
	for _, cluster := range clusters {
		if set, err := jwk.Parse(cluster.Source.Inline); err == nil {
			readings[cluster.Name] = reading{set: set}
		}
	}
	return conflicting(clusters, readings)
}

// conflicting is Conflicts for keys that were read.
func conflicting(clusters []Cluster, readings map[string]reading) map[string][]SharedKeyError {
	claims := make(map[string]*claim, len(clusters))
	for _, cluster := range clusters {
		set, err := pinned(readings[cluster.Name].set, cluster.Pins)
		if err == nil {
			claims[cluster.Name] = &claim{cluster: cluster.Name, issuer: cluster.Issuer, legacy: cluster.Legacy, keys: set.Keys, support: keytrust.Named}
		}
	}
	x := newIndex()
	x.apply(claims)
	return x.rejected()
}

// exclusive says whether a key would stand for two clusters.
func exclusive(clusters []Cluster, readings map[string]reading) error {
	refused := conflicting(clusters, readings)
	if len(refused) == 0 {
		return nil
	}
	first := slices.Min(slices.Collect(maps.Keys(refused)))
	return &refused[first][0]
}

// Check says whether c alone can be configured, without reading anything.
func (c Cluster) Check() error {
	switch {
	case c.Name == "":
		return errors.New("name is required")
	case c.Name == Everyone && !c.Source.Hub:
		return fmt.Errorf("the entry %q takes keys that are published on the hub and no others", Everyone)
	case c.Name == Everyone && (c.Issuer != "" || len(c.Pins) > 0):
		return fmt.Errorf("the entry %q can have no issuer and no pins: each cluster has its own", Everyone)
	case c.Issuer == "" && !c.Source.Hub:
		return errors.New("issuer is required: it is the \"iss\" of the cluster's tokens")
	case c.StaleFor < 0:
		return errors.New("staleFor must not be negative")
	}
	if c.Issuer != "" {
		if err := keytrust.CheckIssuer(c.Issuer); err != nil {
			return err
		}
	}
	return c.Source.check(c.Issuer)
}

func (s Source) check(issuer string) error {
	switch given := s.given(); len(given) {
	case 0:
		return errors.New("a source of keys is required: inline, a file, a URI, discovery or the hub")
	case 1:
	default:
		return fmt.Errorf("exactly one source of keys is possible, not %s", strings.Join(given, " and "))
	}
	if s.URI == "" && s.Discovery == nil {
		if len(s.CA) > 0 || s.CAFile != "" || s.Auth != (Auth{}) {
			return errors.New("a CA and credentials are for a URI and discovery only")
		}
		return nil
	}
	return s.checkRemote(issuer)
}

// given names the sources that are set.
func (s Source) given() []string {
	var names []string
	for name, set := range map[string]bool{
		"inline keys": len(s.Inline) > 0, "a file": s.File != "", "a URI": s.URI != "",
		"discovery": s.Discovery != nil, "the hub": s.Hub,
	} {
		if set {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func (s Source) checkRemote(issuer string) error {
	switch {
	case len(s.CA) > 0 && s.CAFile != "":
		return errors.New("a CA is given twice, as data and as a file")
	case s.Auth.TokenFile != "" && s.Auth.KubeconfigFile != "":
		return errors.New("a token file and a kubeconfig cannot both authenticate")
	case s.URI != "":
		return secureURL("the URI of the key set", s.URI)
	case s.Discovery.URL != "":
		return secureURL("the discovery URL", s.Discovery.URL)
	case s.Auth.KubeconfigFile == "":
		return secureURL("discovery without a URL needs an issuer that is one:", issuer)
	}
	return nil
}

// secureURL refuses what would send keys or credentials in the clear, or put a
// credential into messages.
func secureURL(what, raw string) error {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return fmt.Errorf("%s is not a URL", what)
	case u.Scheme != "https" || u.Host == "":
		return fmt.Errorf("%s %q must begin with https://: keys that came over an unprotected connection prove nothing", what, u.Redacted())
	case u.User != nil:
		return fmt.Errorf("%s must not contain a user or a password: use a token file or a kubeconfig", what)
	}
	return nil
}
