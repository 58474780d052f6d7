package addon_test

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// TestWhatOthersMadeStays: an object with a name of an add-on's identity and
// without the mark of one is not taken away with the add-on's identity.
func TestWhatOthersMadeStays(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.cluster(t, "c1")
	theirs := account("c1", names.AddOnServiceAccountUpstream("a1"))
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: names.AddOnTokenRole("a2")}}
	e.create(t, theirs, role, addOn("c1", "a1"), addOn("c1", "a2"))
	uids := map[client.Object]string{theirs: string(theirs.UID), role: string(role.UID)}
	e.start(t, nil)

	// Both have been looked at when their conditions go.
	e.declare(t, "c1", "a1", "token", upstreamUser("c1", "a1"))
	e.awaitNotReady(t, "c1", "a1", names.ReasonServiceAccountTaken)
	e.declare(t, "c1", "a2", "token", names.ServiceAccountUser("c1", "default"))
	e.awaitNotReady(t, "c1", "a2", names.ReasonServiceAccountNotAllowed)
	for _, name := range []string{"a1", "a2"} {
		e.certify(t, "c1", name)
		e.awaitNoCondition(t, "c1", name)
	}
	for object, uid := range uids {
		if !e.exists(t.Context(), t, object) || string(object.GetUID()) != uid || object.GetDeletionTimestamp() != nil {
			t.Errorf("%T %s is gone", object, object.GetName())
		}
	}
}
