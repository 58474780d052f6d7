package legacytoken

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// GatherPaged is Gather with small pages.
func GatherPaged(ctx context.Context, reader client.Reader, scope Scope, size int64, now time.Time, recent int) (*Inventory, error) {
	return Gather(ctx, paged{reader, size}, scope, now, recent)
}

// paged reads lists in small pages.
type paged struct {
	client.Reader

	size int64
}

// List implements client.Reader.
func (p paged) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return p.Reader.List(ctx, list, append(options, client.Limit(p.size))...)
}

// WithSum returns a Token whose Secret holds a token.
func WithSum(t Token, token string) *Token {
	t.sum = sumOf([]byte(token))
	return &t
}

// WithAccountUID returns a Token of a ServiceAccount with a UID.
func WithAccountUID(t Token, uid types.UID) *Token {
	t.accountUID = uid
	return &t
}

// References are the Secrets that Pods of a specification need, sorted.
func References(spec *corev1.PodSpec) []string { return references(spec).UnsortedList() }

// Rejection says why a pull secret cannot be handed over.
func Rejection(secret *corev1.Secret, t *Token, account *corev1.ServiceAccount) string {
	return rejection(secret, t, account)
}

// HandOver returns a pull secret as the controller recognizes it.
func HandOver(secret *corev1.Secret, t *Token, account *corev1.ServiceAccount) *corev1.Secret {
	return handOver(secret, t, account)
}

// TakeBack returns a pull secret as it was before a handover.
func TakeBack(live, before, handed *corev1.Secret) (*corev1.Secret, error) {
	return takeBack(live, before, handed)
}

// Begin hands a pull secret over and does not wait.
func (m *Migration) Begin(ctx context.Context, t *Token, p PullSecret) error {
	_, err := m.begin(ctx, t, p)
	return err
}

// ManagedHosts are those of the pull secrets that the controller keeps.
func (m *Migration) ManagedHosts(ctx context.Context, like *corev1.Secret) ([]string, error) {
	return m.managedHosts(ctx, like)
}
