package driver

import (
	"fmt"
	"slices"
	"strings"

	operatorv1 "open-cluster-management.io/api/operator/v1"
)

// Catalog are the drivers of clusters that there are. The first is the one of a cluster
// that names none.
type Catalog []Setup

// Parse returns the driver that a name or an alias means. The empty name means the first
// driver, as for OCM. The error about another name has the names that there are.
func (c Catalog) Parse(name string) (Setup, error) {
	if name == "" && len(c) > 0 {
		return c[0], nil
	}
	for _, s := range c {
		if name == string(s.Type()) || slices.Contains(s.Aliases(), name) {
			return s, nil
		}
	}
	if name == "grpc" {
		return nil, fmt.Errorf("the registration driver %s is not available in this version: use %s", name, strings.Join(c.names(), " or "))
	}
	return nil, fmt.Errorf("unknown registration driver %q: use one of %s", name, strings.Join(c.names(), ", "))
}

func (c Catalog) names() []string {
	names := make([]string, len(c))
	for i, s := range c {
		names[i] = string(s.Type())
	}
	return names
}

// Enabled is a driver that a hub has, with its settings.
type Enabled struct {
	Setup

	Settings HubSettings
}

// Of returns the drivers that a ClusterManager enables, in its order. It leaves out names
// that mean no driver: the operator rejects such a ClusterManager. manager may be nil.
func (c Catalog) Of(manager *operatorv1.ClusterManager) []Enabled {
	if manager == nil || manager.Spec.RegistrationConfiguration == nil {
		return nil
	}
	var enabled []Enabled
	for _, entry := range manager.Spec.RegistrationConfiguration.RegistrationDrivers {
		if setup, err := c.Parse(entry.AuthType); err == nil {
			enabled = append(enabled, Enabled{setup, HubSettings{Driver: entry, Annotations: manager.Annotations}})
		}
	}
	return enabled
}

// AccountKeys returns the annotations that a Runtime of any driver may have.
func (c Catalog) AccountKeys() []string {
	var keys []string
	for _, s := range c {
		keys = append(keys, s.AccountKeys()...)
	}
	return keys
}
