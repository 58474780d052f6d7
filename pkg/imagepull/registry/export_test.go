package registry

// Normalize checks and sorts hosts.
func Normalize(hosts []string) ([]string, error) { return normalize(hosts) }

// Extend replaces the hosts that were found.
func (h *Hosts) Extend(found []string) (changed bool) { return h.extend(found) }
