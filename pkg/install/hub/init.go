package hub

import (
	"cmp"
	"context"
	"fmt"
	"slices"

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
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/lookup"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/takeover"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/origin"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// crdClusterManagers is the CRD of the hub's operator.
const crdClusterManagers = "clustermanagers.operator.open-cluster-management.io"

// retained is the live state that an installation retains.
type retained struct {
	manager *operatorv1.ClusterManager
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
	// flags are the optional flags of the operator.
	flags []string
}

// objects returns what a hub consists of, in the order in which it is applied.
// info is published unless the cluster publishes it already. It is pure but for
// the random secret of a new bootstrap token.
func (h Values) objects(l retained, info bootstrap.ClusterInfo) ([]client.Object, error) {
	cm := h.clusterManager(l.manager)
	values := manifests.HubOperator{
		SkipNamespace: h.KeepNamespace,
		Version:       buildinfo.Version,
		Operator:      install.OperatorPod(cm.Spec.RegistrationImagePullSpec, max(l.replicas, 1), cm.Spec.ResourceRequirement, cm.Spec.NodePlacement),
		OperatorFlags: h.OperatorFlags(l.flags),
		DockerConfig:  install.FirstSet(h.PullCredentials, l.pull),
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
	install.Annotate(objs, "ClusterManager", cm.Annotations)
	if h.unchanged(cm, l.manager) {
		// Nothing to change. Applying it would claim the defaults that the API
		// server has filled in.
		objs = install.Without(objs, "ClusterManager")
	}
	return h.TakeOver.Foremost(objs, "ClusterManager"), nil
}

// unchanged reports whether the live ClusterManager needs no change.
func (h Values) unchanged(wanted, live *operatorv1.ClusterManager) bool {
	return live != nil && apiequality.Semantic.DeepEqual(wanted.Spec, live.Spec) &&
		h.Server == "" && h.Features.empty() &&
		!slices.ContainsFunc(h.Drivers, func(s driver.HubSettings) bool { return len(s.Annotations) > 0 })
}

// system returns what the drivers of a hub need in kube-system. Drivers with settings that
// cannot work need nothing there: the preflight reports them.
func (h Values) system(cm *operatorv1.ClusterManager) []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	for _, e := range h.Catalog.Of(cm) {
		rules = append(rules, e.HubRuntime(e.Settings).System...)
	}
	return rules
}

// cleanup returns the desired cleanup job: the live one by default, so that an
// upgrade updates its image.
func (h Values) cleanup(l retained) *Cleanup {
	switch {
	case h.Cleanup == nil:
		return l.cleanup
	case h.Cleanup.Schedule == "":
		return nil
	}
	return h.Cleanup
}

// Render returns the objects of a new hub without looking at a cluster.
func (h Values) Render(info bootstrap.ClusterInfo) ([]client.Object, error) {
	return h.objects(retained{}, info)
}

// Init installs or updates the hub that h describes and waits, if r.Wait is set,
// until it works. info is the hub's address and CA. A take-over waits in any case.
func (r Runner) Init(ctx context.Context, h Values, info bootstrap.ClusterInfo) (install.Outcome, error) {
	s := &initiation{Runner: r, values: h, Installation: r.NewInstallation("Installing the hub operator", func(ctx context.Context) (install.Prepared, error) {
		return r.prepare(ctx, h, info)
	})}
	err := install.RunPhases(ctx, s,
		(*initiation).Check,
		(*initiation).Begin,
		(*initiation).ApplyObjects,
		(*initiation).removeCleanup,
		(*initiation).await,
		(*initiation).Finish,
	)
	return s.Outcome, err
}

// initiation is one run of Init.
type initiation struct {
	Runner
	*install.Installation
	values Values
}

// removeCleanup removes the cleanup job where that was asked for.
func (s *initiation) removeCleanup(ctx context.Context) error {
	if c := s.values.Cleanup; c == nil || c.Schedule != "" {
		return nil
	}
	_, err := s.Applier().Delete(ctx, cleanupJob(Cleanup{}, "")...)
	return err
}

// await waits where that was asked for. A take-over needs our components before it may
// remove those of OCM.
func (s *initiation) await(ctx context.Context) error {
	if !s.Wait && s.Prepared.Over == nil {
		return nil
	}
	return s.awaitHub(ctx, s.Prepared.Objects)
}

// prepare gathers the facts and checks them, and renders the objects.
func (r Runner) prepare(ctx context.Context, h Values, info bootstrap.ClusterInfo) (p install.Prepared, err error) {
	l, err := r.live(ctx)
	if err != nil {
		return p, err
	}
	if p.Objects, err = h.objects(l, info); err != nil {
		return p, err
	}
	facts, err := r.Gather(ctx, p.Objects, crdClusterManagers, origin.Hub, h.TakeOver.Rights()...)
	if err != nil {
		return p, err
	}
	if facts.Granted, err = granted(ctx, r.Client, facts.Manager, h.Catalog); err != nil {
		return p, err
	}
	p.Over, err = h.TakeOver.Survey(&facts, func() (*takeover.Survey, error) {
		crds, err := hubCRDs(p.Objects)
		if err != nil {
			return nil, err
		}
		return takeover.SurveyHub(ctx, r.Client, crds)
	})
	if err != nil {
		return p, err
	}
	p.Findings = append(checkHub(facts, h), p.Over.Findings()...)
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
		install.DeploymentReady(names.HubNamespace, names.HubRegistrationDeployment(names.ClusterManagerName)),
		install.DeploymentReady(names.HubNamespace, names.HubAddOnWebhookDeployment(names.ClusterManagerName)),
	}
	for _, obj := range objs {
		if obj.GetAnnotations()[names.AnnotationTokenAuthorizer] == "true" {
			targets = append(targets, install.DeploymentReady(names.HubNamespace, names.TokenAuthorizer))
		}
	}
	return targets
}

// live reads what an installation retains.
func (r Runner) live(ctx context.Context) (retained, error) {
	var (
		l   retained
		err error
	)
	if l.manager, err = lookup.ClusterManager(ctx, r.Client); err != nil {
		return l, err
	}
	pull, err := lookup.SecretData(ctx, r.Client, names.OperatorNamespace, names.ImagePullSecret)
	if err != nil {
		return l, err
	}
	l.pull = pull[corev1.DockerConfigJsonKey]
	token, err := lookup.SecretData(ctx, r.Client, metav1.NamespaceSystem, names.BootstrapTokenSecret)
	if err != nil {
		return l, err
	}
	l.tokenSecret = string(token["token-secret"])
	info, err := r.liveInfo(ctx)
	if err != nil {
		return l, err
	}
	// Our own is updated; another owner's is left alone.
	l.info = info != nil && !install.Owned(info)
	if l.cleanup, err = r.liveCleanup(ctx); err != nil {
		return l, err
	}
	if l.flags, err = r.OperatorFlags(ctx, names.ClusterManagerOperator); err != nil {
		return l, err
	}
	l.replicas, err = r.replicas(ctx)
	return l, err
}

// liveInfo reads the published cluster-info, if there is one.
func (r Runner) liveInfo(ctx context.Context) (*corev1.ConfigMap, error) {
	key := client.ObjectKey{Namespace: names.ClusterInfoNamespace, Name: names.ClusterInfoConfigMap}
	return lookup.Get(ctx, r.Client, key, &corev1.ConfigMap{})
}

// replicas returns three where there are several control plane nodes, as upstream.
func (r Runner) replicas(ctx context.Context) (int32, error) {
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
