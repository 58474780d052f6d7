package agent

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/apply"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/buildinfo"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/lookup"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/takeover"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/origin"
)

// crdKlusterlets is the CRD that the managed cluster's operator works on.
const crdKlusterlets = "klusterlets.operator.open-cluster-management.io"

// retained is the live state that an installation retains.
type retained struct {
	klusterlet *operatorv1.Klusterlet
	// pull is the image pull credentials.
	pull []byte
	// flags are the optional flags of the operator.
	flags []string
}

// live reads what an installation retains.
func (r Runner) live(ctx context.Context) (l retained, err error) {
	if l.klusterlet, err = lookup.Klusterlet(ctx, r.Client); err != nil {
		return l, err
	}
	pull, err := lookup.SecretData(ctx, r.Client, names.OperatorNamespace, names.ImagePullSecret)
	if err != nil {
		return l, err
	}
	l.pull = pull[corev1.DockerConfigJsonKey]
	l.flags, err = r.OperatorFlags(ctx, names.KlusterletOperator)
	return l, err
}

// objects returns what a managed cluster's agent consists of, in the order in
// which it is applied. It is pure.
func (k Values) objects(l retained) ([]client.Object, error) {
	klusterlet := k.klusterlet(l.klusterlet)
	work, err := WorkPermissions(klusterlet)
	if err != nil {
		return nil, err
	}
	rendered, err := manifests.RenderKlusterletOperator(manifests.KlusterletOperator{
		SkipNamespace: k.KeepNamespace,
		Version:       buildinfo.Version,
		Operator: install.OperatorPod(klusterlet.Spec.RegistrationImagePullSpec, 1,
			klusterlet.Spec.ResourceRequirement, klusterlet.Spec.NodePlacement),
		OperatorFlags:       k.OperatorFlags(l.flags),
		DockerConfig:        install.FirstSet(k.PullCredentials, l.pull),
		BootstrapKubeconfig: k.Bootstrap,
		Spec:                klusterlet.Spec,
		Work:                work,
	})
	if err != nil {
		return nil, err
	}
	objs := apply.Objects(rendered)
	install.Annotate(objs, "Klusterlet", klusterlet.Annotations)
	if l.klusterlet != nil && k.PublishIssuer == nil && k.Work == (Work{}) && apiequality.Semantic.DeepEqual(klusterlet.Spec, l.klusterlet.Spec) {
		// Nothing to change; see Hub.objects.
		objs = install.Without(objs, "Klusterlet")
	}
	return k.TakeOver.Foremost(objs, "Klusterlet"), nil
}

// Render returns the objects of a new agent without looking at a cluster.
func (k Values) Render() ([]client.Object, error) { return k.objects(retained{}) }

// Install installs or updates the agent that k describes. onHub is the hub's
// ManagedCluster of the cluster's name; nil if there is none, or it is unknown. A
// take-over waits until the agent works.
func (r Runner) Install(ctx context.Context, k Values, onHub *clusterv1.ManagedCluster) (install.Outcome, error) {
	s := &installation{Runner: r, Installation: r.NewInstallation("Installing the agent", func(ctx context.Context) (install.Prepared, error) {
		return r.prepare(ctx, k, onHub)
	})}
	err := install.RunPhases(ctx, s,
		(*installation).Check,
		(*installation).forgetDetached,
		(*installation).Begin,
		(*installation).ApplyObjects,
		(*installation).await,
		(*installation).Finish,
	)
	return s.Outcome, err
}

// installation is one run of Install.
type installation struct {
	Runner
	*install.Installation
}

// await waits until the agents work with the hub, before a take-over may remove those of
// OCM.
func (s *installation) await(ctx context.Context) error {
	if s.Prepared.Over == nil {
		return nil
	}
	if err := s.AwaitAgent(ctx); err != nil {
		return err
	}
	return s.AwaitJoined(ctx)
}

// prepare gathers the facts and checks them, and renders the objects.
func (r Runner) prepare(ctx context.Context, k Values, onHub *clusterv1.ManagedCluster) (p install.Prepared, err error) {
	l, err := r.live(ctx)
	if err != nil {
		return p, err
	}
	if p.Objects, err = k.objects(l); err != nil {
		return p, err
	}
	facts, err := r.Gather(ctx, p.Objects, crdKlusterlets, origin.Agent, k.TakeOver.Rights()...)
	if err != nil {
		return p, err
	}
	work, err := r.checkWork(ctx, k.klusterlet(l.klusterlet), l.klusterlet)
	if err != nil {
		return p, err
	}
	p.Over, err = k.TakeOver.Survey(&facts, func() (*takeover.Survey, error) {
		crds, err := agentCRDs(p.Objects)
		if err != nil {
			return nil, err
		}
		return takeover.SurveyAgent(ctx, r.Client, crds)
	})
	if err != nil {
		return p, err
	}
	p.Findings = slices.Concat(checkKlusterlet(facts, k), checkName(facts, k, onHub), work, p.Over.Findings())
	return p, nil
}

// RefuseOthersAgent returns an error if another product runs an agent here. It
// is for callers that prepare the hub before Join, which looks as well.
func (r Runner) RefuseOthersAgent(ctx context.Context) error {
	other, err := origin.Agent(ctx, r.Client)
	if err != nil {
		return err
	}
	_, err = install.Sift(install.CheckForeign(other), nil)
	return err
}

// forgetDetached lets an agent that the hub detached register again.
func (s *installation) forgetDetached(ctx context.Context) error {
	l, err := lookup.Klusterlet(ctx, s.Client)
	if err != nil || l == nil {
		return err
	}
	secret := &corev1.Secret{}
	err = s.Client.Get(ctx, client.ObjectKey{Namespace: lookup.Namespace(l), Name: names.HubKubeconfigSecret}, secret)
	if _, marked := secret.Annotations[names.AnnotationDetached]; err != nil || !marked {
		return client.IgnoreNotFound(err)
	}
	patch := client.MergeFrom(secret.DeepCopy())
	delete(secret.Annotations, names.AnnotationDetached)
	if err := s.Client.Patch(ctx, secret, patch); err != nil {
		return fmt.Errorf("secret %s: %w", secret.Name, err)
	}
	return nil
}
