package install

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/apply"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/bootstrap"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/buildinfo"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/takeover"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/origin"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// crdClusterManagers is the CRD of the hub's operator.
const crdClusterManagers = "clustermanagers.operator.open-cluster-management.io"

// live is what a cluster has already and an installation retains.
type live struct {
	manager    *operatorv1.ClusterManager
	klusterlet *operatorv1.Klusterlet
	// pull is the image pull credentials.
	pull []byte
	// tokenSecret is the secret part of the bootstrap token.
	tokenSecret string
	// info is true if another owner publishes cluster-info.
	info bool
	// cleanup is the cleanup job.
	cleanup *Cleanup
	// replicas is the number of pods of the hub's operator; zero is one.
	replicas int32
	// syncLabels are the operators, by name, that copy the labels of their resources.
	syncLabels map[string]bool
}

// operatorFlags are the flags of an operator that are not always set.
func (l live) operatorFlags(w Workload, operator string) []string {
	copies := l.syncLabels[operator]
	if w.SyncLabels != nil {
		copies = *w.SyncLabels
	}
	if copies {
		return []string{manifests.ArgSyncLabels}
	}
	return nil
}

// objects returns what a hub consists of, in the order in which it is applied.
// info is published unless the cluster publishes it already. It is pure but for
// the random secret of a new bootstrap token.
func (h Hub) objects(l live, info bootstrap.ClusterInfo) ([]client.Object, error) {
	cm := h.clusterManager(l.manager)
	values := manifests.HubOperator{
		SkipNamespace: h.KeepNamespace,
		Version:       buildinfo.Version,
		Operator:      operatorPod(cm.Spec.RegistrationImagePullSpec, max(l.replicas, 1), cm.Spec.ResourceRequirement, cm.Spec.NodePlacement),
		OperatorFlags: l.operatorFlags(h.Workload, names.ClusterManagerOperator),
		DockerConfig:  firstSet(h.PullCredentials, l.pull),
		System:        h.system(cm),
		Spec:          cm.Spec,
	}
	if h.BootstrapToken {
		values.BootstrapToken = cmp.Or(l.tokenSecret, bootstrap.NewTokenSecret())
	}
	rendered, err := manifests.RenderHubOperator(values)
	if err != nil {
		return nil, err
	}
	objs := apply.Objects(rendered)
	if !l.info && info.Server != "" {
		public, err := publicInfo(info)
		if err != nil {
			return nil, err
		}
		objs = append(objs, public...)
	}
	if cleanup := h.cleanup(l); cleanup != nil {
		objs = append(objs, cleanupJob(*cleanup, cm.Spec.RegistrationImagePullSpec)...)
	}
	annotate(objs, "ClusterManager", cm.Annotations)
	if h.unchanged(cm, l.manager) {
		// Nothing to change. Applying it would claim the defaults that the API
		// server has filled in.
		objs = without(objs, "ClusterManager")
	}
	return h.TakeOver.foremost(objs, "ClusterManager"), nil
}

// unchanged reports whether the live ClusterManager needs no change.
func (h Hub) unchanged(wanted, live *operatorv1.ClusterManager) bool {
	return live != nil && apiequality.Semantic.DeepEqual(wanted.Spec, live.Spec) &&
		h.Server == "" && h.Features.empty() &&
		!slices.ContainsFunc(h.Drivers, func(s driver.HubSettings) bool { return len(s.Annotations) > 0 })
}

// system returns what the drivers of a hub need in kube-system. Drivers with settings that
// cannot work need nothing there: the preflight reports them.
func (h Hub) system(cm *operatorv1.ClusterManager) []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	for _, e := range h.Catalog.Of(cm) {
		rules = append(rules, e.HubRuntime(e.Settings).System...)
	}
	return rules
}

// cleanup returns the desired cleanup job: the live one by default, so that an
// upgrade updates its image.
func (h Hub) cleanup(l live) *Cleanup {
	switch {
	case h.Cleanup == nil:
		return l.cleanup
	case h.Cleanup.Schedule == "":
		return nil
	}
	return h.Cleanup
}

// Render returns the objects of a new hub without looking at a cluster.
func (h Hub) Render(info bootstrap.ClusterInfo) ([]client.Object, error) {
	return h.objects(live{}, info)
}

// Init installs or updates the hub that h describes and waits, if r.Wait is set,
// until it works. info is the hub's address and CA. A take-over waits in any case.
func (r *Runner) Init(ctx context.Context, h Hub, info bootstrap.ClusterInfo) (Outcome, error) {
	var (
		out Outcome
		p   prepared
	)
	warnings, err := r.preflight(ctx, func(ctx context.Context) (_ []Finding, err error) {
		p, err = r.prepareHub(ctx, h, info)
		return p.findings, err
	})
	out.Warnings = warnings
	if err != nil {
		return out, err
	}
	if err := r.perform(ctx, p.over, before); err != nil {
		return out, err
	}
	if out.Changes, err = r.apply(ctx, "Installing the hub operator", p.objs); err != nil {
		return out, err
	}
	if h.Cleanup != nil && h.Cleanup.Schedule == "" {
		if _, err := r.applier().Delete(ctx, cleanupJob(Cleanup{}, "")...); err != nil {
			return out, err
		}
	}
	if !r.Wait && p.over == nil {
		return out, nil
	}
	if err := r.awaitHub(ctx, p.objs); err != nil {
		return out, err
	}
	out.Replaced = p.over.from()
	return out, r.perform(ctx, p.over, after)
}

// prepareHub gathers the facts and checks them, and renders the objects.
func (r *Runner) prepareHub(ctx context.Context, h Hub, info bootstrap.ClusterInfo) (p prepared, err error) {
	l, err := r.live(ctx)
	if err != nil {
		return p, err
	}
	if p.objs, err = h.objects(l, info); err != nil {
		return p, err
	}
	facts, err := r.gather(ctx, p.objs, crdClusterManagers, origin.Hub, h.TakeOver.rights()...)
	if err != nil {
		return p, err
	}
	if facts.Granted, err = granted(ctx, r.Client, facts.Manager, h.Catalog); err != nil {
		return p, err
	}
	if h.TakeOver != nil {
		crds, err := hubCRDs(p.objs)
		if err != nil {
			return p, err
		}
		if p.over, err = h.TakeOver.newReplacement(takeover.SurveyHub(ctx, r.Client, crds)); err != nil {
			return p, err
		}
		p.over.settles(&facts)
	}
	p.findings = append(checkHub(facts, h), p.over.findings()...)
	return p, nil
}

// hubTargets returns what to wait for on a hub of these objects.
func hubTargets(objs []client.Object) []apply.Target {
	targets := []apply.Target{
		{
			Object: &operatorv1.ClusterManager{ObjectMeta: metav1.ObjectMeta{Name: names.ClusterManagerName}},
			Check: apply.Conditions(
				apply.Condition("Applied", "True"),
				apply.Condition("Progressing", "False"),
				apply.Condition("HubRegistrationDegraded", "False"),
			),
		},
		deploymentReady(names.HubNamespace, names.HubRegistrationDeployment(names.ClusterManagerName)),
		deploymentReady(names.HubNamespace, names.HubAddOnWebhookDeployment(names.ClusterManagerName)),
	}
	for _, obj := range objs {
		if obj.GetAnnotations()[names.AnnotationTokenAuthorizer] == "true" {
			targets = append(targets, deploymentReady(names.HubNamespace, names.TokenAuthorizer))
		}
	}
	return targets
}

func deploymentReady(namespace, name string) apply.Target {
	return apply.Target{
		Object: &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}},
		Check:  apply.DeploymentReady(),
	}
}

// live reads what an installation retains.
func (r *Runner) live(ctx context.Context) (live, error) {
	var (
		l   live
		err error
	)
	if l.manager, err = liveManager(ctx, r.Client); err != nil {
		return l, err
	}
	if l.klusterlet, err = liveKlusterlet(ctx, r.Client); err != nil {
		return l, err
	}
	pull, err := secretData(ctx, r.Client, names.OperatorNamespace, names.ImagePullSecret)
	if err != nil {
		return l, err
	}
	l.pull = pull[corev1.DockerConfigJsonKey]
	token, err := secretData(ctx, r.Client, metav1.NamespaceSystem, names.BootstrapTokenSecret)
	if err != nil {
		return l, err
	}
	l.tokenSecret = string(token["token-secret"])
	info, err := r.liveInfo(ctx)
	if err != nil {
		return l, err
	}
	// Our own is updated; another owner's is left alone.
	l.info = info != nil && !ownedByUs(info)
	if l.cleanup, err = r.liveCleanup(ctx); err != nil {
		return l, err
	}
	if l.syncLabels, err = r.labelCopiers(ctx); err != nil {
		return l, err
	}
	l.replicas, err = r.replicas(ctx)
	return l, err
}

// labelCopiers are the operators that run with the argument to copy labels.
func (r *Runner) labelCopiers(ctx context.Context) (map[string]bool, error) {
	copiers := map[string]bool{}
	for _, name := range []string{names.ClusterManagerOperator, names.KlusterletOperator} {
		d, err := getLive(ctx, r.Client, client.ObjectKey{Namespace: names.OperatorNamespace, Name: name}, &appsv1.Deployment{})
		if err != nil {
			return nil, err
		}
		copiers[name] = d != nil && slices.ContainsFunc(d.Spec.Template.Spec.Containers, func(c corev1.Container) bool {
			return slices.Contains(c.Args, manifests.ArgSyncLabels) || slices.Contains(c.Args, manifests.ArgSyncLabels+"=true")
		})
	}
	return copiers, nil
}

// liveInfo reads the published cluster-info, if there is one.
func (r *Runner) liveInfo(ctx context.Context) (*corev1.ConfigMap, error) {
	key := client.ObjectKey{Namespace: names.ClusterInfoNamespace, Name: names.ClusterInfoConfigMap}
	return getLive(ctx, r.Client, key, &corev1.ConfigMap{})
}

func ownedByUs(obj client.Object) bool {
	return apply.AppliedBy(obj, FieldManager)
}

// secretData is what a Secret holds, nothing where there is none or it may not be read.
func secretData(ctx context.Context, c client.Reader, namespace, name string) (map[string][]byte, error) {
	var secret corev1.Secret
	err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &secret)
	if err != nil && !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("secret %s: %w", name, err)
	}
	return secret.Data, nil
}

// replicas returns three where there are several control plane nodes, as upstream.
func (r *Runner) replicas(ctx context.Context) (int32, error) {
	total := 0
	for _, label := range []string{"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"} {
		nodes := &metav1.PartialObjectMetadataList{}
		nodes.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NodeList"))
		err := r.Client.List(ctx, nodes, client.HasLabels{label}, client.Limit(2))
		if err != nil && !apierrors.IsForbidden(err) {
			return 0, fmt.Errorf("nodes: %w", err)
		}
		total = max(total, len(nodes.Items))
	}
	if total > 1 {
		return 3, nil
	}
	return 1, nil
}
