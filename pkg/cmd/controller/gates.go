//go:build linux

package controller

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/component-base/featuregate"
)

// gates are feature gates by name, every known one with its default or with
// what the user set.
type gates map[featuregate.Feature]bool

// without reports the first of features that is on although this version does
// not have it: silence would look like it had.
func (g gates) without(features ...featuregate.Feature) error {
	for _, name := range features {
		if g[name] {
			return fmt.Errorf("feature gate %q is not available in this version: leave it off", name)
		}
	}
	return nil
}

// parseGates reads "Name=true" settings of the known gates.
func parseGates(known map[featuregate.Feature]featuregate.FeatureSpec, settings []string) (gates, error) {
	set := make(gates, len(known))
	for name, spec := range known {
		set[name] = spec.Default
	}
	for _, setting := range settings {
		name, value, ok := strings.Cut(setting, "=")
		on, err := strconv.ParseBool(value)
		if !ok || err != nil {
			return nil, fmt.Errorf("feature gate %q: write it as Name=true or Name=false", setting)
		}
		if _, ok := known[featuregate.Feature(name)]; !ok {
			return nil, fmt.Errorf("unknown feature gate %q: use one of %s", name, joined(known))
		}
		set[featuregate.Feature(name)] = on
	}
	return set, nil
}

func joined(known map[featuregate.Feature]featuregate.FeatureSpec) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(known)) {
		out = append(out, string(name))
	}
	return strings.Join(out, ", ")
}
