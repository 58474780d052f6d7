package addon

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// NewReconciler returns a reconciler that only the caller calls, to see when it
// wants to be called again.
func NewReconciler(ctx context.Context, mgr ctrl.Manager, config Config) (*Reconciler, error) {
	r, err := newReconciler(mgr, config)
	if err != nil {
		return nil, err
	}
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	context.AfterFunc(ctx, queue.ShutDown)
	return r, r.watches.Start(ctx, queue)
}

// UnknownCondition is the condition of a registration of which nothing is known.
func UnknownCondition() metav1.Condition { return (&item{}).condition() }

// Undone is a status that another writer undoes each time.
type Undone struct{ memory *addOnMemory }

// NewUndone returns one that was never written.
func NewUndone() Undone { return Undone{newMemory().of("one")} }

// Write writes the status at a time, and returns how long to wait then before it is written
// again.
func (u Undone) Write(now time.Time) time.Duration {
	u.memory.record([]string{"status"}, now)
	return u.memory.conflictDelay([]string{"status"}, conflictsBeforeBackoff, now)
}

// Observed is a Reconciler of which a test can see when it has nothing to do.
type Observed struct {
	*Reconciler

	mu    sync.Mutex
	over  *sync.Cond
	looks map[string]look
}

// look is what is known of the looks at one add-on.
type look struct {
	// begun and done count them; last is how the last one ended.
	begun, done int
	again       time.Duration
	err         error
}

// SetupObserved is Setup.
func SetupObserved(mgr ctrl.Manager, config Config) (*Observed, error) {
	r, err := newReconciler(mgr, config)
	if err != nil {
		return nil, err
	}
	o := &Observed{Reconciler: r, looks: map[string]look{}}
	o.over = sync.NewCond(&o.mu)
	return o, control(mgr, r.watches, o)
}

// Reconcile implements reconcile.Reconciler.
func (o *Observed) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	o.note(req.Name, func(l *look) { l.begun++ })
	result, err := o.Reconciler.Reconcile(ctx, req)
	o.note(req.Name, func(l *look) { l.done, l.again, l.err = l.begun, result.RequeueAfter, err })
	o.over.Broadcast()
	return result, err
}

func (o *Observed) note(addOn string, change func(*look)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	l := o.looks[addOn]
	change(&l)
	o.looks[addOn] = l
}

// Idle has every add-on looked at once more, and returns why the agent is not
// at rest: it lags behind what live tells, or wants to look again soon.
func (o *Observed) Idle(ctx context.Context, live client.Reader, soon time.Duration) error {
	addOns, err := o.abreast(ctx, live)
	if err != nil {
		return err
	}
	for _, addOn := range addOns {
		l, err := o.look(ctx, addOn)
		switch {
		case err != nil:
			return err
		case l.err != nil:
			return fmt.Errorf("the last look at %s: %w", addOn, l.err)
		case l.again > 0 && l.again < soon:
			return fmt.Errorf("%s is looked at again in %v", addOn, l.again)
		}
	}
	return nil
}

// look waits for the end of a look at an add-on that has not begun yet.
func (o *Observed) look(ctx context.Context, addOn string) (look, error) {
	defer context.AfterFunc(ctx, o.over.Broadcast)()
	o.mu.Lock()
	defer o.mu.Unlock()
	before := o.looks[addOn].begun
	o.watches.enqueue(addOn)
	for o.looks[addOn].done <= before {
		if ctx.Err() != nil {
			return look{}, fmt.Errorf("wait for a look at %s: %w", addOn, ctx.Err())
		}
		o.over.Wait()
	}
	return o.looks[addOn], nil
}

// abreast returns the names of the add-ons, if the caches know everything that
// is there.
func (o *Observed) abreast(ctx context.Context, live client.Reader) ([]string, error) {
	seen, err := versions(ctx, o.hub, o.secrets, o.config)
	if err != nil {
		return nil, err
	}
	there, err := versions(ctx, live, live, o.config)
	if err != nil {
		return nil, err
	}
	if !maps.Equal(seen, there) {
		return nil, fmt.Errorf("the agent knows %v, and there is %v", seen, there)
	}
	addOns := map[string]bool{}
	for object := range there {
		addOns[object.addOn] = true
	}
	return slices.Sorted(maps.Keys(addOns)), nil
}

// object is one that an agent watches.
type object struct{ kind, namespace, name, addOn string }

// versions are those of an agent's add-ons and of the Secrets that are marked
// as kept for them.
func versions(ctx context.Context, hub, managed client.Reader, config Config) (map[object]string, error) {
	found := map[object]string{}
	var addOns addonv1beta1.ManagedClusterAddOnList
	if err := hub.List(ctx, &addOns, client.InNamespace(config.Cluster)); err != nil {
		return nil, err
	}
	for i := range addOns.Items {
		found[object{"ManagedClusterAddOn", config.Cluster, addOns.Items[i].Name, addOns.Items[i].Name}] = addOns.Items[i].ResourceVersion
	}
	var secrets corev1.SecretList
	if err := managed.List(ctx, &secrets, client.MatchingLabels{names.LabelAddOnCredential: config.Namespace}); err != nil {
		return nil, err
	}
	for i := range secrets.Items {
		s := &secrets.Items[i]
		found[object{"Secret", s.Namespace, s.Name, s.Annotations[names.AnnotationCredentialAddOn]}] = s.ResourceVersion
	}
	return found, nil
}
