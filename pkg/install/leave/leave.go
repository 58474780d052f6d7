package leave

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/apply"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/agent"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/lookup"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// forcePatience is how long the operator is given to clean up before force
// does it without the operator.
const forcePatience = 30 * time.Second

// Leave removes the agent and returns what remains. It removes the agent before
// the objects that the agent applied, because the agent would apply them again.
func (r Runner) Leave(ctx context.Context, a agent.Installed, l install.Removal) (left []string, err error) {
	if len(a.Works) > 0 && l.Chosen() == "" {
		return nil, &agent.WorksRemainError{Works: a.Works}
	}
	if a.Klusterlet != nil {
		if err := r.removeKlusterlet(ctx, a.Klusterlet, l); err != nil {
			return nil, err
		}
	}
	works, err := r.appliedLast(ctx, a)
	if err != nil {
		return nil, err
	}
	if err := r.settle(ctx, works, l.Chosen()); err != nil {
		return nil, err
	}
	for _, work := range works {
		if l.Chosen() != install.DeleteResources && len(work.Resources) > 0 {
			left = append(left, "the resources of ManifestWork "+work.Name+": "+work.Owned())
		}
	}
	if !l.Purge {
		return left, nil
	}
	return left, r.purgeOperator(ctx)
}

// appliedLast returns the ManifestWorks of an agent once more after it was removed: it
// may have applied another one since they were listed.
func (r Runner) appliedLast(ctx context.Context, a agent.Installed) ([]agent.AppliedWork, error) {
	var list operatorv1.KlusterletList
	if err := r.Client.List(ctx, &list); err != nil && !lookup.Gone(err) {
		return nil, fmt.Errorf("klusterlets: %w", err)
	}
	return agent.Works(ctx, r.Client, a.Klusterlet, list.Items)
}

func (r Runner) removeKlusterlet(ctx context.Context, k *operatorv1.Klusterlet, l install.Removal) error {
	return r.Step(ctx, "Removing the agent", func(ctx context.Context, say install.Say) error {
		target := &operatorv1.Klusterlet{ObjectMeta: metav1.ObjectMeta{Name: k.Name}}
		waitCtx := ctx
		if l.Force {
			var cancel context.CancelFunc
			waitCtx, cancel = context.WithTimeout(ctx, forcePatience)
			defer cancel()
		}
		_, err := r.Applier().DeleteAndWait(waitCtx, r.Waiter(say), target)
		if !l.Force || ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		say("the operator does not respond; removing the objects that it applied")
		return r.removeWithoutOperator(ctx, k, say)
	})
}

// removeWithoutOperator does the work of an operator that no longer runs.
func (r Runner) removeWithoutOperator(ctx context.Context, k *operatorv1.Klusterlet, say install.Say) error {
	objs, err := klusterletObjects(k)
	if err != nil {
		return err
	}
	if _, err := r.Applier().DeleteAndWait(ctx, r.Waiter(say), objs...); err != nil {
		return err
	}
	live := &operatorv1.Klusterlet{}
	if err := r.Client.Get(ctx, client.ObjectKey{Name: k.Name}, live); err != nil {
		return client.IgnoreNotFound(err)
	}
	patch := client.MergeFrom(live.DeepCopy())
	live.Finalizers = nil
	return client.IgnoreNotFound(r.Client.Patch(ctx, live, patch))
}

// klusterletObjects returns what the operator applies for a Klusterlet, with all that
// a work agent may have.
func klusterletObjects(k *operatorv1.Klusterlet) ([]client.Object, error) {
	pod := manifests.Pod{Image: "none", Replicas: 1}
	values := manifests.Klusterlet{Name: k.Name, Namespace: lookup.Namespace(k), Registration: pod}
	roles := []names.WorkPermissions{names.WorkPermissionsAdmin}
	if permissions, err := agent.WorkPermissions(k); err == nil && permissions != "" && !permissions.Admin() {
		roles = append(roles, permissions)
	}
	rendered, err := manifests.RenderKlusterletBase(values)
	if err != nil {
		return nil, err
	}
	for _, role := range roles {
		values.Work = &manifests.WorkAgent{Component: manifests.Component{Pod: pod}, Permissions: role}
		work, err := manifests.RenderKlusterletWork(values)
		if err != nil {
			return nil, err
		}
		rendered = append(rendered, work...)
	}
	runtime, err := manifests.RenderKlusterletRuntime(values)
	return apply.Objects(append(rendered, runtime...)), err
}

// purgeOperator removes what join installed. The operator's namespace stays
// while something else, such as a hub, lives in it.
func (r Runner) purgeOperator(ctx context.Context) error {
	var list operatorv1.KlusterletList
	if err := r.Client.List(ctx, &list); err == nil && len(list.Items) > 0 && !r.DryRun {
		return nil
	}
	objs, err := r.operatorObjects(ctx)
	if err != nil {
		return err
	}
	return r.Step(ctx, "Removing the operator", func(ctx context.Context, say install.Say) error {
		_, err := r.Applier().DeleteAndWait(ctx, r.Waiter(say), objs...)
		return err
	})
}

// operatorObjects returns what join installs besides the Klusterlet, as far as
// nothing else uses it.
func (r Runner) operatorObjects(ctx context.Context) ([]client.Object, error) {
	objs, err := agent.Values{Workload: install.Workload{KeepNamespace: true}}.Render()
	if err != nil {
		return nil, err
	}
	objs = install.Without(objs, "Klusterlet")
	shared, err := r.Shared(ctx, names.KlusterletOperator)
	if err != nil {
		return nil, err
	}
	if shared {
		return install.Without(objs, "Secret"), nil
	}
	return append(objs, &corev1.Namespace{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{Name: names.OperatorNamespace},
	}), nil
}

// Plan lists what Leave would remove, for a dry run.
func (r Runner) Plan(ctx context.Context, a agent.Installed, l install.Removal) ([]string, error) {
	var plan []string
	if a.Klusterlet != nil {
		plan = append(plan, "klusterlet.operator.open-cluster-management.io/"+a.Klusterlet.Name)
	}
	for _, work := range a.Works {
		plan = append(plan, "appliedmanifestwork.work.open-cluster-management.io/"+work.Object.Name)
		if l.Chosen() == install.DeleteResources {
			plan = append(plan, work.Resources...)
		}
	}
	if !l.Purge {
		return plan, nil
	}
	objs, err := r.operatorObjects(ctx)
	for _, obj := range objs {
		plan = append(plan, strings.ToLower(obj.GetObjectKind().GroupVersionKind().Kind)+"/"+obj.GetName())
	}
	return plan, err
}
