package fair

import "container/list"

// Cache maps keys to values within a limit of bytes. It is not safe for
// concurrent use.
type Cache[K comparable, V any] struct {
	limit, bytes int
	gone         func(K, V)
	entries      map[K]*list.Element
	clusters     map[string]*share
}

// share is one cluster's part of the cache, with the most recently used entry first.
type share struct {
	used  list.List
	bytes int
}

type entry[K comparable, V any] struct {
	key     K
	value   V
	cluster string
	bytes   int
}

// New returns a Cache of up to limit bytes. Gone, unless it is nil, is called with
// every entry that leaves the cache, for any reason.
func New[K comparable, V any](limit int, gone func(K, V)) *Cache[K, V] {
	return &Cache[K, V]{limit: limit, gone: gone, entries: map[K]*list.Element{}, clusters: map[string]*share{}}
}

// Get returns a value, which counts as a use of it.
func (c *Cache[K, V]) Get(key K) (value V, ok bool) {
	element, ok := c.entries[key]
	if !ok {
		return value, false
	}
	e := of[K, V](element)
	c.clusters[e.cluster].used.MoveToFront(element)
	return e.value, true
}

// Peek returns a value without using it.
func (c *Cache[K, V]) Peek(key K) (value V, ok bool) {
	if element, ok := c.entries[key]; ok {
		return of[K, V](element).value, true
	}
	return value, false
}

// Add puts a value of a cluster in place of an earlier one. A value that is
// larger than the limit is not kept.
func (c *Cache[K, V]) Add(cluster string, key K, value V, bytes int) {
	c.Remove(key)
	s := c.clusters[cluster]
	if s == nil {
		s = &share{}
		c.clusters[cluster] = s
	}
	c.entries[key] = s.used.PushFront(&entry[K, V]{key: key, value: value, cluster: cluster, bytes: bytes})
	s.bytes += bytes
	c.bytes += bytes
	for c.bytes > c.limit {
		c.drop(c.largest().used.Back())
	}
}

// Remove drops an entry, if it is there.
func (c *Cache[K, V]) Remove(key K) {
	if element, ok := c.entries[key]; ok {
		c.drop(element)
	}
}

// Values returns all values, in no order.
func (c *Cache[K, V]) Values() []V {
	all := make([]V, 0, len(c.entries))
	for _, element := range c.entries {
		all = append(all, of[K, V](element).value)
	}
	return all
}

// Len is the number of entries.
func (c *Cache[K, V]) Len() int { return len(c.entries) }

func (c *Cache[K, V]) largest() *share {
	var most *share
	for _, s := range c.clusters {
		if most == nil || s.bytes > most.bytes {
			most = s
		}
	}
	return most
}

func (c *Cache[K, V]) drop(element *list.Element) {
	e := of[K, V](element)
	s := c.clusters[e.cluster]
	s.used.Remove(element)
	s.bytes -= e.bytes
	c.bytes -= e.bytes
	if s.used.Len() == 0 {
		delete(c.clusters, e.cluster)
	}
	delete(c.entries, e.key)
	if c.gone != nil {
		c.gone(e.key, e.value)
	}
}

func of[K comparable, V any](element *list.Element) *entry[K, V] {
	return element.Value.(*entry[K, V]) //nolint:errcheck,forcetypeassert // nothing else is in there
}
