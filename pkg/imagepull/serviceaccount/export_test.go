package serviceaccount

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Contention is what is known of removed entries.
type Contention struct{ *contention }

// NewContention returns an empty one.
func NewContention() Contention { return Contention{newContention()} }

// Attached notes that the entry was written.
func (c Contention) Attached(account *corev1.ServiceAccount, version string) {
	c.attached(account, version, partEntry)
}

// Missing notes that the entry is not there.
func (c Contention) Missing(account *corev1.ServiceAccount, now time.Time) (attach, gaveUp bool) {
	return c.missing(account, partEntry, now)
}

// Stopped counts the ServiceAccounts that are left alone.
func (c Contention) Stopped() int { return c.stopped() }

// Forget drops a ServiceAccount.
func (c Contention) Forget(account *corev1.ServiceAccount) {
	c.forget(client.ObjectKeyFromObject(account))
}

// Manager names who wrote imagePullSecrets last.
func Manager(fields []metav1.ManagedFieldsEntry) string { return manager(fields) }
