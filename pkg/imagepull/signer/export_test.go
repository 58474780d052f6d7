package signer

// Publish notes a key set.
func (k *Keys) Publish(ids ...string) { k.publish(ids) }

// Known returns the keys that are not retired.
func (k *Keys) Known() (ids []string, settled bool) { return k.known() }
