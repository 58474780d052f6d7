package serviceaccount

import (
	"hash/fnv"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// An entry that others remove this often within this time is theirs to decide.
const (
	mostRemovals   = 3
	removalsWithin = 10 * time.Minute
)

// parts are the changes of a ServiceAccount: the entry in imagePullSecrets, the
// annotation that names the pull secret, and the absence from secrets.
type parts uint8

const (
	partEntry parts = 1 << iota
	partPointer
	partMounts
)

// contention knows whose entries were removed by others.
type contention struct {
	mu       sync.Mutex
	accounts map[types.NamespacedName]*contended
	// left counts those that are stopped.
	left int
}

// contended is the history of one ServiceAccount's entry.
type contended struct {
	account types.UID
	// attached is the ServiceAccount's resourceVersion after our last write, empty once
	// its removal was counted, and given are its parts by then.
	attached string
	given    parts
	removals []time.Time
	// stopped says that it is not attached until the ServiceAccount, which then had
	// the fingerprint, changes.
	stopped     bool
	fingerprint uint64
}

func newContention() *contention { return &contention{accounts: map[types.NamespacedName]*contended{}} }

// attached notes that parts were written.
func (c *contention) attached(account *corev1.ServiceAccount, version string, given parts) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := client.ObjectKeyFromObject(account)
	a := c.accounts[key]
	if a == nil || a.account != account.UID {
		c.drop(key)
		a = &contended{account: account.UID}
		c.accounts[key] = a
	}
	a.attached = version
	a.given |= given
}

// present notes that nothing is missing.
func (c *contention) present(account *corev1.ServiceAccount) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if key := client.ObjectKeyFromObject(account); c.accounts[key] != nil && c.accounts[key].stopped {
		c.drop(key)
	}
}

// missing records missing parts, and returns whether to write them, and whether that
// has just become hopeless. A cached state from before our last write does not count as
// a removal, nor does a part that was not given by then.
func (c *contention) missing(account *corev1.ServiceAccount, lacks parts, now time.Time) (attach, gaveUp bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.accounts[client.ObjectKeyFromObject(account)]
	if a == nil || a.account != account.UID {
		return true, false
	}
	if a.stopped && a.fingerprint == fingerprint(account) {
		return false, false
	}
	if a.stopped {
		*a = contended{account: account.UID}
		c.left--
	}
	if lacks&a.given == 0 {
		return true, false
	}
	if order, err := resourceversion.CompareResourceVersion(account.ResourceVersion, a.attached); err != nil || order <= 0 {
		return err != nil || order == 0, false // As we wrote it: what it lacks is due only now.
	}
	a.attached = ""
	a.removals = append(slices.DeleteFunc(a.removals, func(at time.Time) bool { return now.Sub(at) > removalsWithin }), now)
	if len(a.removals) < mostRemovals {
		return true, false
	}
	a.stopped, a.fingerprint = true, fingerprint(account)
	c.left++
	return false, true
}

// stopped counts the ServiceAccounts that are left alone.
func (c *contention) stopped() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.left
}

// forget drops a ServiceAccount that is gone or needs no entry.
func (c *contention) forget(account types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(account)
}

func (c *contention) drop(account types.NamespacedName) {
	if a := c.accounts[account]; a != nil && a.stopped {
		c.left--
	}
	delete(c.accounts, account)
}

// fingerprint hashes a ServiceAccount without the parts that others maintain.
func fingerprint(account *corev1.ServiceAccount) uint64 {
	h := fnv.New64a()
	write := func(text string) { _, _ = h.Write([]byte(text + "\x00")) } // A hash never fails to write.
	for _, entry := range account.ImagePullSecrets {
		write(entry.Name)
	}
	write("")
	for _, entry := range account.Secrets {
		write(entry.Name)
	}
	if mount := account.AutomountServiceAccountToken; mount != nil && !*mount {
		write("no token")
	}
	return h.Sum64()
}

// manager names who wrote imagePullSecrets last, ourselves aside, by the managed
// fields.
func manager(fields []metav1.ManagedFieldsEntry) string {
	var last metav1.ManagedFieldsEntry
	for _, entry := range fields {
		if entry.Manager == string(Owner) || entry.FieldsV1 == nil {
			continue
		}
		owns := strings.Contains(string(entry.FieldsV1.GetRawBytes()), `"f:imagePullSecrets"`)
		if owns && (last.Time == nil || entry.Time != nil && last.Time.Before(entry.Time)) {
			last = entry
		}
	}
	return last.Manager
}
