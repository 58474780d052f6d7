package fair_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/internal/fair"
)

// TestAFloodTakesNothingFromOthers: one cluster adds without end, another one
// keeps all that it has, which is less than its share.
func TestAFloodTakesNothingFromOthers(t *testing.T) {
	t.Parallel()
	var gone []string
	c := fair.New(100, func(key string, _ int) { gone = append(gone, key) })
	for i := range 4 {
		c.Add("small", fmt.Sprint("small", i), i, 10)
	}
	for i := range 1000 {
		c.Add("flood", fmt.Sprint("flood", i), i, 7)
	}
	for i := range 4 {
		if got, ok := c.Get(fmt.Sprint("small", i)); !ok || got != i {
			t.Errorf("small%d: %d, %v", i, got, ok)
		}
	}
	if c.Len() != 4+8 || len(gone) != 1000-8 || gone[0] != "flood0" { // 40 and 56 bytes.
		t.Errorf("%d entries; %d went, the first is %s", c.Len(), len(gone), gone[0])
	}
	if _, ok := c.Get("flood999"); !ok {
		t.Error("the newest entry went")
	}
}

// TestTheOldestGoesFirst, where use makes an entry young.
func TestTheOldestGoesFirst(t *testing.T) {
	t.Parallel()
	c := fair.New[string, int](30, nil)
	for i, key := range []string{"a", "b", "c"} {
		c.Add("c1", key, i, 10)
	}
	c.Get("a")
	c.Peek("b")
	c.Add("c1", "d", 3, 10)
	if _, ok := c.Peek("b"); ok || c.Len() != 3 {
		t.Error("b stays")
	}
	c.Add("c1", "a", 7, 20) // In place of the one before.
	values := c.Values()
	if slices.Sort(values); !slices.Equal(values, []int{3, 7}) {
		t.Errorf("values %v", values)
	}
	c.Add("c1", "huge", 9, 31)
	if c.Len() != 0 {
		t.Errorf("%d entries, and one that is too large", c.Len())
	}
	c.Remove("a")
	if _, ok := c.Get("a"); ok {
		t.Error("a stays")
	}
}
