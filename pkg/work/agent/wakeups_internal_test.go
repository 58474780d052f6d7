package agent

import (
	"context"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/agent/inventory"
)

// answer is a hub that has every work, or answers each read with an error.
type answer struct {
	client.Reader

	err error
}

func (a answer) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return a.err
}

// TestGone: the end of an AppliedManifestWork wakes a work that waits for it. Where the
// work is gone too, the two controllers would wake each other for ever.
func TestGone(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		hub  answer
		want int
	}{
		"the hub has the work":        {answer{}, 1},
		"the hub has no work of that": {answer{err: apierrors.NewNotFound(workv1.Resource("manifestworks"), "app")}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := &agent{config: Config{Cluster: "c1"}, inventory: inventory.New(nil, nil)}
			a.hub.session.Store(&session{hash: "h", works: test.hub})
			a.works.queue = workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
			defer a.works.queue.ShutDown()
			(&evictor{a}).gone(t.Context(), names.AppliedManifestWork("h", "app"))
			if got := a.works.queue.Len(); got != test.want {
				t.Errorf("%d requests, want %d", got, test.want)
			}
		})
	}
}
