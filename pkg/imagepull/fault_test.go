package imagepull_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/interrupt"
)

// killed runs controllers that are killed after their n-th write about a
// ServiceAccount or its pull secret, and returns once they are gone.
func (e *env) killed(t *testing.T, account string, n int) {
	t.Helper()
	writes := interrupt.After(n, account, strings.Contains)
	stop := e.watched(t, writes)
	defer stop()
	writes.AwaitCut(t, patience, func(context.Context) (bool, error) { return false, nil })
}

// others is what has to stay in imagePullSecrets.
func others() []corev1.LocalObjectReference {
	return []corev1.LocalObjectReference{{Name: "theirs"}}
}

// TestKilledAfterEachWrite: whatever write the controllers were killed after, the
// next ones finish the work: one Secret, with a token that is good, listed once.
func TestKilledAfterEachWrite(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	// The request that makes the Secret does not name it; what remains are the token,
	// the data and the list.
	for n := 1; n <= 3; n++ {
		account := &corev1.ServiceAccount{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: e.namespace, Name: fmt.Sprintf("killed%d", n), Annotations: map[string]string{names.AnnotationPullSecret: "true"},
			},
			ImagePullSecrets: others(),
		}
		e.create(t, account)
		e.killed(t, account.Name, n)
		stop := e.start(t)
		e.settled(t, []string{host}, account)
		stop()
		secret := e.secret(t.Context(), t, account)
		if !authenticates(t, e.admin, tokenOf(t, secret), audience) {
			t.Errorf("killed after write %d: the token is not good", n)
		}
		want := append(others(), corev1.LocalObjectReference{Name: secret.Name})
		if got := e.live(t.Context(), t, account).ImagePullSecrets; fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("killed after write %d: imagePullSecrets %v", n, got)
		}
		if tokens := len(e.writes.About(account.Name + "/token")); tokens > 1 {
			t.Errorf("killed after write %d: then %d tokens", n, tokens)
		}
	}
}

// TestKilledWhileOptingOut: what was begun to be taken away is taken away.
func TestKilledWhileOptingOut(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	for n := 1; n <= 2; n++ { // The list and the Secret.
		account := e.account(t, fmt.Sprintf("leaving%d", n))
		stop := e.start(t)
		e.settled(t, []string{host}, account)
		stop()
		e.merge(t, account.DeepCopy(), `{"metadata":{"annotations":{"`+names.AnnotationPullSecret+`":"false"}}}`)
		e.killed(t, account.Name, n)
		stop = e.start(t)
		await.Condition(t, patience, "nothing is left", func(ctx context.Context) (bool, error) {
			return e.secret(ctx, t, account) == nil && len(e.live(ctx, t, account).ImagePullSecrets) == 0, nil
		})
		stop()
	}
}
