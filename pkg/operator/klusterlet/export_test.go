package klusterlet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// Observed is an operator of which a test can see when it has nothing to do.
type Observed struct {
	*Reconciler

	mu    sync.Mutex
	over  *sync.Cond
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
	looks map[string]look
}

// look is what is known of the looks at one Klusterlet.
type look struct {
	// begun and done count them; err is how the last one ended.
	begun, done int
	err         error
}

// SetupObserved is Setup.
func SetupObserved(mgr ctrl.Manager, config Config) (*Observed, error) {
	o := &Observed{Reconciler: newReconciler(mgr, config), looks: map[string]look{}}
	o.over = sync.NewCond(&o.mu)
	borrow := source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.queue = queue
		return nil
	})
	if err := o.control(mgr, o, borrow); err != nil {
		return nil, err
	}
	return o, setupAddOnPullSecret(mgr, config)
}

// Reconcile implements reconcile.Reconciler.
func (o *Observed) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	o.note(req.Name, func(l *look) { l.begun++ })
	result, err := o.Reconciler.Reconcile(ctx, req)
	o.note(req.Name, func(l *look) { l.done, l.err = l.begun, err })
	o.over.Broadcast()
	return result, err
}

func (o *Observed) note(klusterlet string, change func(*look)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	l := o.looks[klusterlet]
	change(&l)
	o.looks[klusterlet] = l
}

// Idle has every Klusterlet looked at once more, and returns why the operator is
// not at rest: it lags behind what live tells, what it looked at changed in the
// meantime, or a look failed.
func (o *Observed) Idle(ctx context.Context, live client.Reader) error {
	before, err := o.abreast(ctx, live)
	if err != nil {
		return err
	}
	var klusterlets operatorv1.KlusterletList
	if err := live.List(ctx, &klusterlets); err != nil {
		return err
	}
	for i := range klusterlets.Items {
		if err := o.look(ctx, klusterlets.Items[i].Name); err != nil {
			return err
		}
	}
	after, err := o.abreast(ctx, live)
	if err == nil && !maps.Equal(before, after) {
		err = fmt.Errorf("there was %v, and now there is %v", before, after)
	}
	return err
}

// look waits for the end of a look at a Klusterlet that has not begun yet.
func (o *Observed) look(ctx context.Context, klusterlet string) error {
	defer context.AfterFunc(ctx, o.over.Broadcast)()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.queue == nil {
		return errors.New("the operator has not started")
	}
	before := o.looks[klusterlet].begun
	o.queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: klusterlet}})
	for o.looks[klusterlet].done <= before {
		if ctx.Err() != nil {
			return fmt.Errorf("wait for a look at %s: %w", klusterlet, ctx.Err())
		}
		o.over.Wait()
	}
	return o.looks[klusterlet].err
}

// abreast returns the versions of all that the operator watches, if its caches
// know them. Deployments whose controller has work to do change again.
func (o *Observed) abreast(ctx context.Context, live client.Reader) (map[string]string, error) {
	seen, err := versions(ctx, o.Client)
	if err != nil {
		return nil, err
	}
	there, err := versions(ctx, live)
	if err != nil {
		return nil, err
	}
	if !maps.Equal(seen, there) {
		return nil, fmt.Errorf("the operator knows %v, and there is %v", seen, there)
	}
	return there, nil
}

// versions are those of all that belongs to Klusterlets.
func versions(ctx context.Context, reader client.Reader) (map[string]string, error) {
	found := map[string]string{}
	for _, list := range []client.ObjectList{
		&operatorv1.KlusterletList{}, &apiextensionsv1.CustomResourceDefinitionList{}, &appsv1.DeploymentList{}, &corev1.NamespaceList{},
		&corev1.ServiceAccountList{}, &rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBindingList{}, &rbacv1.RoleList{}, &rbacv1.RoleBindingList{},
	} {
		var options []client.ListOption
		switch list.(type) {
		case *operatorv1.KlusterletList, *corev1.NamespaceList:
		default:
			options = append(options, client.HasLabels{names.LabelCreatedByKlusterlet})
		}
		if err := reader.List(ctx, list, options...); err != nil {
			return nil, err
		}
		err := apimeta.EachListItem(list, func(item runtime.Object) error {
			if d, ok := item.(*appsv1.Deployment); ok {
				if err := rolledOut(d); err != nil {
					return err
				}
			}
			object, err := apimeta.Accessor(item)
			if err == nil {
				found[fmt.Sprintf("%T %s/%s", item, object.GetNamespace(), object.GetName())] = object.GetResourceVersion()
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// rolledOut returns what the Deployment controller has yet to do for a
// Deployment whose Pods need not become ready.
func rolledOut(d *appsv1.Deployment) error {
	if s := d.Status; s.ObservedGeneration != d.Generation || s.UpdatedReplicas != *d.Spec.Replicas || s.AvailableReplicas+s.UnavailableReplicas < s.Replicas {
		return fmt.Errorf("the rollout of Deployment %s is at %+v", d.Name, s)
	}
	return nil
}
