package agent

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/agent/inventory"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/agent/strategy"
)

// TestMemoryOfRepairs: the time between repairs doubles while another writer changes the
// object back, which is reported from the second repair on, and starts again after a calm.
func TestMemoryOfRepairs(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	contests := []strategy.Contest{{Field: ".data.key", Manager: "other"}}
	m := &memory{}
	if !m.repairAt().IsZero() {
		t.Error("the first repair waits")
	}
	for i, gap := range []time.Duration{firstRepair, 2 * firstRepair, 4 * firstRepair} {
		m.repair(now, contests)
		if got := m.repairAt().Sub(now); got != gap {
			t.Errorf("repair %d: the next waits for %s, want %s", i, got, gap)
		}
		if reported := m.contestedFor(now) > 0; reported != (i > 0) {
			t.Errorf("repair %d: reported %v", i, reported)
		}
		now = m.repairAt()
	}
	now = now.Add(calm + time.Second)
	if m.repair(now, contests); m.repairAt().Sub(now) != firstRepair || m.contestedFor(now) > 0 {
		t.Errorf("after a calm the next repair waits for %s", m.repairAt().Sub(now))
	}
}

// TestRecord: the memory of an object is forgotten with its owner, and what was observed with
// the generation, or if it was not reported.
func TestRecord(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	r := newRecords().of("app", "uid-1")
	r.begin("owner-1", 1)
	m := r.memory(key("one"))
	observe := func() { m.applied, m.version, m.observed = 7, "10", now }
	observe()
	r.seen = 1
	if r.begin("owner-1", 1); r.memory(key("one")) != m || m.version != "10" {
		t.Errorf("the same generation: %+v", m)
	}
	if r.begin("owner-1", 2); m.applied != 7 || m.version != "" {
		t.Errorf("another generation: %+v", m)
	}
	observe()
	if r.unreport(now.Add(-time.Second)); m.version != "10" {
		t.Error("what was reported is forgotten")
	}
	if r.unreport(now); m.applied != 7 || m.version != "" || !m.observed.IsZero() {
		t.Errorf("what was not reported: %+v", m)
	}
	if r.begin("owner-2", 2); len(r.objects) != 0 {
		t.Error("the memory outlives the owner")
	}
}

// TestPass: phases run in their order until one fails, or ends the pass without an error.
func TestPass(t *testing.T) {
	t.Parallel()
	failure := errors.New("no answer")
	for name, test := range map[string]struct {
		answers []error
		ran     int
		want    error
	}{
		"all phases":           {[]error{nil, nil}, 2, nil},
		"the first phase ends": {[]error{errDone, failure}, 1, nil},
		"a phase fails":        {[]error{nil, failure, nil}, 2, failure},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ran := 0
			var p pass
			for _, answer := range test.answers {
				p = append(p, func(context.Context) error { ran++; return answer })
			}
			if err := p.run(t.Context()); !errors.Is(err, test.want) || ran != test.ran {
				t.Errorf("%d phases ran, then: %v", ran, err)
			}
		})
	}
}

func key(name string) inventory.Key { return inventory.Key{Namespace: "default", Name: name} }
