package agent

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// FeatureGates are the feature gates of the agent, by name.
type FeatureGates map[string]bool

// Feature gates of OCM's spoke registration.
const (
	GateClusterClaim    = "ClusterClaim"
	GateAddonManagement = "AddonManagement"
	gateClusterProperty = "ClusterProperty"
	gateMultipleHubs    = "MultipleHubs"
	gateV1beta1CSR      = "V1beta1CSRAPICompatibility"
)

// defaults returns the gates with their default values. OCM's own list needs a library
// that slows every start of the command.
func defaults() FeatureGates {
	return FeatureGates{
		GateClusterClaim: true, GateAddonManagement: true,
		gateClusterProperty: false, gateMultipleHubs: false, gateV1beta1CSR: false,
	}
}

// unavailable returns OCM's gates that this version does not implement. Enabling one is
// an error.
func unavailable() []string {
	return []string{gateMultipleHubs, gateClusterProperty, gateV1beta1CSR}
}

// ParseFeatureGates reads "A=true,B=false" from every entry over the defaults
// of OCM's spoke registration. An unknown gate, a value that is no boolean and
// a gate that is not available in this version are errors.
func ParseFeatureGates(entries []string) (FeatureGates, error) {
	gates := defaults()
	for entry := range strings.SplitSeq(strings.Join(entries, ","), ",") {
		if entry = strings.TrimSpace(entry); entry == "" {
			continue
		}
		name, value, _ := strings.Cut(entry, "=")
		if _, known := gates[name]; !known {
			return nil, fmt.Errorf("unknown feature gate %q: use one of %s", name, strings.Join(slices.Sorted(maps.Keys(gates)), ", "))
		}
		on, err := strconv.ParseBool(value)
		if err != nil {
			return nil, fmt.Errorf("invalid value %q of feature gate %s: use %s=true or %s=false", value, name, name, name)
		}
		if on && slices.Contains(unavailable(), name) {
			return nil, fmt.Errorf("feature gate %s is not available in this version; disable it", name)
		}
		gates[name] = on
	}
	return gates, nil
}

// Enabled reports whether the gate is on.
func (g FeatureGates) Enabled(name string) bool { return g[name] }
