package token_test

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/token"
)

func request(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
}

// FuzzQueue: whatever is added, and becomes urgent while it waits, what comes out
// is in order, complete, and each once.
func FuzzQueue(f *testing.F) {
	f.Add([]byte{1, 2, 3, 200, 100, 50, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		ranks := map[reconcile.Request]token.Rank{}
		q := token.NewOrdered(func(r reconcile.Request) token.Rank { return ranks[r] })
		rankOf := func(b byte) token.Rank {
			return token.NewRank(b&1 == 1, credential.Urgency(b>>1%3), time.Unix(int64(b>>3), 0))
		}
		for i, b := range data {
			item := request(strconv.Itoa(i))
			ranks[item] = rankOf(b)
			q.Push(item)
			touched := request(strconv.Itoa(int(b) % (i + 1)))
			ranks[touched] = rankOf(b + 7)
			q.Touch(touched)
		}
		q.Touch(request("unknown"))
		var out []reconcile.Request
		for q.Len() > 0 {
			out = append(out, q.Pop())
		}
		sorted := slices.IsSortedFunc(out, func(a, b reconcile.Request) int {
			switch {
			case ranks[a].Before(ranks[b]):
				return -1
			case ranks[b].Before(ranks[a]):
				return 1
			}
			return 0
		})
		if !sorted || len(out) != len(data) {
			t.Errorf("%d of %d, sorted %v", len(out), len(data), sorted)
		}
	})
}

// TestQueueOrder: what costs nothing, then the broken, then what lacks a server,
// then renewals, of each the soonest to expire first.
func TestQueueOrder(t *testing.T) {
	t.Parallel()
	ranks := map[reconcile.Request]token.Rank{
		request("idle"):     token.NewRank(true, credential.Routine, time.Unix(9, 0)),
		request("expired"):  token.NewRank(false, credential.Broken, time.Unix(8, 0)),
		request("servers"):  token.NewRank(false, credential.Degraded, time.Unix(7, 0)),
		request("soon"):     token.NewRank(false, credential.Routine, time.Unix(1, 0)),
		request("sometime"): token.NewRank(false, credential.Routine, time.Unix(2, 0)),
	}
	q := token.NewQueue(func(r reconcile.Request) token.Rank { return ranks[r] })
	defer q.ShutDown()
	for item := range ranks {
		q.Add(item)
	}
	for _, want := range []string{"idle", "expired", "servers", "soon", "sometime"} {
		if got, _ := q.Get(); got.Name != want {
			t.Errorf("%s comes before %s", got.Name, want)
		}
	}
}

// TestWhatBecomesUrgentMovesForward: a Secret that is added again while it waits is
// ranked again.
func TestWhatBecomesUrgentMovesForward(t *testing.T) {
	t.Parallel()
	broken := map[string]bool{}
	q := token.NewQueue(func(r reconcile.Request) token.Rank {
		expires, _ := strconv.Atoi(r.Name)
		if broken[r.Name] {
			return token.NewRank(false, credential.Broken, time.Time{})
		}
		return token.NewRank(false, credential.Routine, time.Unix(int64(expires), 0))
	})
	defer q.ShutDown()
	for i := range 20 {
		q.Add(request(strconv.Itoa(i)))
	}
	broken["13"] = true
	q.Add(request("13"))
	if got, _ := q.Get(); got.Name != "13" || q.Len() != 19 {
		t.Errorf("%s comes first, and %d are left", got.Name, q.Len())
	}
}

// TestMemory: the cache of a Secret that is behind our own write asks for nothing,
// one that has caught up waits a minute, and a recreated Secret does not.
func TestMemory(t *testing.T) {
	t.Parallel()
	m, at := token.NewMemory(), time.Unix(1000, 0)
	secret := types.NamespacedName{Namespace: "n", Name: "s"}
	if wait, stale := m.Blocks(secret, "u1", "5", at); stale || wait > 0 {
		t.Error("it knows a Secret that it never wrote")
	}
	m.Note(secret, "u1", "10", at)
	for _, tc := range []struct {
		uid     types.UID
		version string
		after   time.Duration
		wait    time.Duration
		stale   bool
	}{
		{uid: "u1", version: "9", after: time.Hour, stale: true},
		{uid: "u1", version: "10", after: time.Second, wait: 59 * time.Second},
		{uid: "u1", version: "11", after: time.Second, wait: 59 * time.Second},
		{uid: "u1", version: "11", after: time.Minute},
		{uid: "u2", version: "9", after: time.Second},
	} {
		wait, stale := m.Blocks(secret, tc.uid, tc.version, at.Add(tc.after))
		if stale != tc.stale || max(wait, 0) != tc.wait {
			t.Errorf("%+v: wait %v, stale %v", tc, wait, stale)
		}
	}
	m.Forget(secret)
	if wait, _ := m.Blocks(secret, "u1", "11", at); wait > 0 {
		t.Error("it remembers what it forgot")
	}
}
