package registry

// Extend replaces the hosts that were found.
func (h *Hosts) Extend(found []string) (changed bool, err error) { return h.extend(found) }
