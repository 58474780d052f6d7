package install

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/apply"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/kubeconfig"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// forcePatience is how long the operator is given to clean up before force
// does it without the operator.
const forcePatience = 30 * time.Second

// ErrNoAgent says that a cluster has no agent under the given name.
var ErrNoAgent = errors.New("no agent of that cluster is installed here")

// Agent is an installed agent.
type Agent struct {
	Klusterlet *operatorv1.Klusterlet
	// Works are the ManifestWorks that it applied.
	Works []AppliedWork
	// Hub is the credential of the hub, if the agent was given one.
	Hub *kubeconfig.Hub
	// Data are the files that the credential refers to.
	Data map[string][]byte
	// Operator says that the operator's Deployment exists.
	Operator bool
}

// FindAgent returns the agent that joined as cluster. Without any agent, but
// with an operator that an interrupted unjoin has left, Klusterlet is nil.
func (r *Runner) FindAgent(ctx context.Context, cluster string) (Agent, error) {
	var (
		a    Agent
		list operatorv1.KlusterletList
	)
	if err := r.Client.List(ctx, &list); err != nil && !Gone(err) {
		return a, fmt.Errorf("klusterlets: %w", err)
	}
	i := -1
	for j := range list.Items {
		name, err := r.clusterName(ctx, &list.Items[j])
		if err != nil {
			return a, err
		}
		if name == cluster {
			i = j
		}
	}
	operator := deploymentReady(names.OperatorNamespace, names.KlusterletOperator).Object
	err := r.Client.Get(ctx, client.ObjectKeyFromObject(operator), operator)
	if client.IgnoreNotFound(err) != nil {
		return a, fmt.Errorf("operator: %w", err)
	}
	a.Operator = err == nil
	switch {
	case i < 0 && (len(list.Items) > 0 || !a.Operator):
		return a, ErrNoAgent
	case i < 0:
		a.Works, err = r.works(ctx, nil, nil)
		return a, err
	}
	a.Klusterlet = &list.Items[i]
	if a.Works, err = r.works(ctx, a.Klusterlet, list.Items); err != nil {
		return a, err
	}
	return a, r.credential(ctx, &a)
}

// clusterName returns the name under which a Klusterlet's agent registers. Without
// one in the spec, the agent generates one and stores it with its credential.
func (r *Runner) clusterName(ctx context.Context, k *operatorv1.Klusterlet) (string, error) {
	if k.Spec.ClusterName != "" {
		return k.Spec.ClusterName, nil
	}
	data, err := secretData(ctx, r.Client, namespaceOf(k), names.HubKubeconfigSecret)
	return string(data[names.KeyClusterName]), err
}

// credential reads the hub kubeconfig of the agent, if there is one.
func (r *Runner) credential(ctx context.Context, a *Agent) error {
	data, err := secretData(ctx, r.Client, namespaceOf(a.Klusterlet), names.HubKubeconfigSecret)
	if err != nil || len(data[names.KeyKubeconfig]) == 0 {
		return err
	}
	hub, err := kubeconfig.ParseHub(data[names.KeyKubeconfig])
	if err != nil {
		return fmt.Errorf("secret %s: %w", names.HubKubeconfigSecret, err)
	}
	a.Hub, a.Data = &hub, data
	return nil
}

func namespaceOf(k *operatorv1.Klusterlet) string {
	if k.Spec.Namespace != "" {
		return k.Spec.Namespace
	}
	return names.AgentNamespace
}

// Removal is how something is removed.
type Removal struct {
	// Force continues although objects remain or the operator does not respond.
	Force bool
	// Purge removes the operator as well when nothing else needs it.
	Purge bool
	// Works is what happens to the resources of ManifestWorks; with Force, they are
	// orphaned unless it says otherwise.
	Works Fate
}

// fate is what happens to the resources of ManifestWorks.
func (l Removal) fate() Fate {
	if l.Works == "" && l.Force {
		return OrphanResources
	}
	return l.Works
}

// Leave removes the agent and returns what remains. The agent goes before what it
// applied: it would apply again what is deleted.
func (r *Runner) Leave(ctx context.Context, a Agent, l Removal) (left []string, err error) {
	if len(a.Works) > 0 && l.fate() == "" {
		return nil, &WorksRemainError{Works: a.Works}
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
	if err := r.settle(ctx, works, l.fate()); err != nil {
		return nil, err
	}
	for _, work := range works {
		if l.fate() != DeleteResources && len(work.Resources) > 0 {
			left = append(left, "the resources of ManifestWork "+work.Name+": "+some(work.Resources))
		}
	}
	if !l.Purge {
		return left, nil
	}
	return left, r.purgeOperator(ctx)
}

// appliedLast returns the ManifestWorks of an agent once more after it was removed: it
// may have applied another one since they were listed.
func (r *Runner) appliedLast(ctx context.Context, a Agent) ([]AppliedWork, error) {
	var list operatorv1.KlusterletList
	if err := r.Client.List(ctx, &list); err != nil && !Gone(err) {
		return nil, fmt.Errorf("klusterlets: %w", err)
	}
	return r.works(ctx, a.Klusterlet, list.Items)
}

func (r *Runner) removeKlusterlet(ctx context.Context, k *operatorv1.Klusterlet, l Removal) error {
	return r.Step(ctx, "Removing the agent", func(ctx context.Context, say Say) error {
		target := named(k.Name)
		waitCtx := ctx
		if l.Force {
			var cancel context.CancelFunc
			waitCtx, cancel = context.WithTimeout(ctx, forcePatience)
			defer cancel()
		}
		_, err := r.applier().DeleteAndWait(waitCtx, r.waiter(say), target)
		if !l.Force || ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		say("the operator does not respond; removing the objects that it applied")
		return r.removeWithoutOperator(ctx, k, say)
	})
}

// removeWithoutOperator does the work of an operator that no longer runs.
func (r *Runner) removeWithoutOperator(ctx context.Context, k *operatorv1.Klusterlet, say Say) error {
	objs, err := klusterletObjects(k)
	if err != nil {
		return err
	}
	if _, err := r.applier().DeleteAndWait(ctx, r.waiter(say), objs...); err != nil {
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
	values := manifests.Klusterlet{Name: k.Name, Namespace: namespaceOf(k), Registration: pod}
	roles := []names.WorkPermissions{names.WorkPermissionsAdmin}
	if permissions, err := WorkPermissions(k); err == nil && permissions != "" && !permissions.Admin() {
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
func (r *Runner) purgeOperator(ctx context.Context) error {
	var list operatorv1.KlusterletList
	if err := r.Client.List(ctx, &list); err == nil && len(list.Items) > 0 && !r.DryRun {
		return nil
	}
	objs, err := r.operatorObjects(ctx)
	if err != nil {
		return err
	}
	return r.Step(ctx, "Removing the operator", func(ctx context.Context, say Say) error {
		_, err := r.applier().DeleteAndWait(ctx, r.waiter(say), objs...)
		return err
	})
}

// operatorObjects returns what join installs besides the Klusterlet, as far as
// nothing else uses it.
func (r *Runner) operatorObjects(ctx context.Context) ([]client.Object, error) {
	objs, err := Klusterlet{Workload: Workload{KeepNamespace: true}}.objects(live{})
	if err != nil {
		return nil, err
	}
	objs = without(objs, "Klusterlet")
	shared, err := r.shared(ctx, names.KlusterletOperator)
	if err != nil {
		return nil, err
	}
	if shared {
		return without(objs, "Secret"), nil
	}
	return append(objs, &corev1.Namespace{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{Name: names.OperatorNamespace},
	}), nil
}

// LeavePlan lists what Leave would remove, for a dry run.
func (r *Runner) LeavePlan(ctx context.Context, a Agent, l Removal) ([]string, error) {
	var plan []string
	if a.Klusterlet != nil {
		plan = append(plan, "klusterlet.operator.open-cluster-management.io/"+a.Klusterlet.Name)
	}
	for _, work := range a.Works {
		plan = append(plan, "appliedmanifestwork.work.open-cluster-management.io/"+work.object.Name)
		if l.fate() == DeleteResources {
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

// shared reports whether another Deployment than operator lives in the
// operators' namespace.
func (r *Runner) shared(ctx context.Context, operator string) (bool, error) {
	deployments := &metav1.PartialObjectMetadataList{}
	deployments.SetGroupVersionKind(deploymentKind())
	if err := r.Client.List(ctx, deployments, client.InNamespace(names.OperatorNamespace)); err != nil {
		return false, fmt.Errorf("deployments: %w", err)
	}
	return slices.ContainsFunc(deployments.Items, func(d metav1.PartialObjectMetadata) bool { return d.Name != operator }), nil
}

// Unblocked returns what blocks the deletion of an object, for messages.
func Unblocked(err error) string {
	if text := Unmet(err); text != "" {
		return text
	}
	if terminating, ok := errors.AsType[*apply.TerminatingError](err); ok {
		return terminating.Error()
	}
	if apierrors.IsForbidden(err) {
		return err.Error()
	}
	return ""
}
