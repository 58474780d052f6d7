package signer

// Publish notes a key set.
func (k *Keys) Publish(ids ...string) { k.publish(ids) }
