package token

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/internal/content"
)

// Rank is the place of a Secret in the queue.
type Rank = rank

// NewRank returns a Rank.
func NewRank(idle bool, urgency credential.Urgency, expires time.Time) Rank {
	return rank{idle: idle, urgency: urgency, expires: expires}
}

// Before reports whether r comes before o.
func (r rank) Before(o Rank) bool { return r.before(o) }

// NewOrdered returns the order of the queue alone.
func NewOrdered(order func(reconcile.Request) Rank) workqueue.Queue[reconcile.Request] {
	return newOrdered(order)
}

// NewQueue returns the whole queue.
func NewQueue(order func(reconcile.Request) Rank) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	return newQueue("", nil, order)
}

// Memory is what is remembered of writes.
type Memory struct{ *memory }

// NewMemory returns an empty Memory.
func NewMemory() Memory { return Memory{newMemory()} }

// Blocks is blocks.
func (m Memory) Blocks(secret types.NamespacedName, uid types.UID, version string, now time.Time) (wait time.Duration, stale bool) {
	return m.blocks(secret, uid, version, now)
}

// Note notes a write.
func (m Memory) Note(secret types.NamespacedName, uid types.UID, version string, at time.Time) {
	m.note(secret, write{secret: uid, version: version, at: at})
}

// Forget is forget.
func (m Memory) Forget(secret types.NamespacedName) { m.forget(secret) }

// Inspect returns the facts about a Secret whose ServiceAccount has a UID.
func Inspect(secret *corev1.Secret, spec Spec, hosts []content.Host, account string, retired func(string) bool) credential.Facts {
	return inspect(secret, wanted{Spec: spec, hosts: hosts, account: account, retired: retired})
}
