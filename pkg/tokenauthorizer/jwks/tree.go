package jwks

import (
	"iter"
	"slices"

	"k8s.io/utils/third_party/forked/golang/btree"
)

// degree of the trees: half of how many rows a node has at most. A change copies
// the nodes on its way, so they are small.
const degree = 16

// path is the key of a row; the table says what its parts are.
type path [3]string

type row[V any] struct {
	path  path
	value V
}

// table is a sorted map that each View has a copy of. A copy costs the same at every
// size: it shares the parts that neither side changes later. The Store copies and
// changes tables under its lock; their copies are read without one.
type table[V any] struct{ rows *btree.BTree[row[V]] }

func newTable[V any]() table[V] {
	return table[V]{rows: btree.New(degree, func(a, b row[V]) bool { return slices.Compare(a.path[:], b.path[:]) < 0 })}
}

func (t table[V]) copy() table[V] { return table[V]{rows: t.rows.Clone()} }

// get returns the zero value for a path that has no row.
func (t table[V]) get(p path) V {
	found, _ := t.rows.Get(row[V]{path: p})
	return found.value
}

func (t table[V]) set(p path, value V) { t.rows.ReplaceOrInsert(row[V]{path: p, value: value}) }

func (t table[V]) remove(p path) { t.rows.Delete(row[V]{path: p}) }

// under are the rows whose path begins with first, in their order.
func (t table[V]) under(first string) iter.Seq2[path, V] {
	return func(yield func(path, V) bool) {
		t.rows.AscendGreaterOrEqual(row[V]{path: path{first}}, func(r row[V]) bool {
			return r.path[0] == first && yield(r.path, r.value)
		})
	}
}
