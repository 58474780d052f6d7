package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/apply"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/buildinfo"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/kubeconfig"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pemutil"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/lookup"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/takeover"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/origin"
)

// crdKlusterlets is the CRD that the managed cluster's operator works on.
const crdKlusterlets = "klusterlets.operator.open-cluster-management.io"

// retained is what a cluster has already and an installation retains.
type retained struct {
	klusterlet *operatorv1.Klusterlet
	// pull is the image pull credentials.
	pull []byte
	// flags are those of the operator that are not always set.
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
	s := &installation{Runner: r, values: k, onHub: onHub}
	err := install.RunPhases(ctx, s,
		(*installation).preflight,
		(*installation).forgetDetached,
		(*installation).begin,
		(*installation).apply,
		(*installation).await,
		(*installation).finish,
	)
	return s.out, err
}

// installation is one run of Install.
type installation struct {
	Runner
	values Values
	onHub  *clusterv1.ManagedCluster
	// prepared is what the preflight found.
	prepared install.Prepared
	out      install.Outcome
}

func (s *installation) preflight(ctx context.Context) (err error) {
	s.out.Warnings, err = s.Preflight(ctx, func(ctx context.Context) (_ []install.Finding, err error) {
		s.prepared, err = s.prepare(ctx, s.values, s.onHub)
		return s.prepared.Findings, err
	})
	return err
}

// begin does the part of a take-over that comes before ours.
func (s *installation) begin(ctx context.Context) error {
	return s.BeginTakeOver(ctx, s.prepared.Over)
}

func (s *installation) apply(ctx context.Context) (err error) {
	s.out.Changes, err = s.Apply(ctx, "Installing the agent", s.prepared.Objects)
	return err
}

// await waits until the agents work with the hub, before a take-over may remove those of
// OCM.
func (s *installation) await(ctx context.Context) error {
	if s.prepared.Over == nil {
		return nil
	}
	if err := s.AwaitAgent(ctx); err != nil {
		return err
	}
	return s.AwaitJoined(ctx)
}

// finish removes what a take-over has replaced.
func (s *installation) finish(ctx context.Context) error {
	s.out.Replaced = s.prepared.Over.From()
	return s.FinishTakeOver(ctx, s.prepared.Over)
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
	if k.TakeOver != nil {
		crds, err := agentCRDs(p.Objects)
		if err != nil {
			return p, err
		}
		if p.Over, err = k.TakeOver.Check(takeover.SurveyAgent(ctx, r.Client, crds)); err != nil {
			return p, err
		}
		p.Over.Settles(&facts)
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

// AwaitAgent waits until the agent runs.
func (r Runner) AwaitAgent(ctx context.Context) error {
	if err := r.Await(ctx, "Waiting for the operator", install.DeploymentReady(names.OperatorNamespace, names.KlusterletOperator)); err != nil {
		return err
	}
	namespace, err := r.agentNamespace(ctx)
	if err != nil {
		return err
	}
	return r.Await(ctx, "Waiting for the agent", apply.Target{Object: named(names.KlusterletName), Check: apply.Conditions(
		apply.Condition("Applied", "True"), apply.Condition("RegistrationDesiredDegraded", "False"),
	)}, install.DeploymentReady(namespace, names.RegistrationAgentDeployment(names.KlusterletName)))
}

// agentNamespace is the namespace of the agent that join installs.
func (r Runner) agentNamespace(ctx context.Context) (string, error) {
	live, err := lookup.Klusterlet(ctx, r.Client)
	if err != nil || live == nil {
		return names.AgentNamespace, err
	}
	return lookup.Namespace(live), nil
}

// AwaitJoined waits until the agents work with a credential of the hub that the agent
// bootstraps at. What the agent reported with that of an earlier hub does not count.
func (r Runner) AwaitJoined(ctx context.Context) error {
	if err := r.Step(ctx, "Waiting for the credential", r.awaitCredential); err != nil {
		return err
	}
	connected := apply.Target{Object: named(names.KlusterletName), Check: apply.Condition(names.ConditionHubConnectionDegraded, "False")}
	if err := r.Await(ctx, "Waiting for the hub to accept the cluster", connected); err != nil {
		return err
	}
	return r.awaitWork(ctx)
}

func (r Runner) awaitCredential(ctx context.Context, _ install.Say) error {
	namespace, err := r.agentNamespace(ctx)
	if err != nil {
		return err
	}
	for {
		stored, err := r.credentialHere(ctx, namespace)
		if err != nil || stored != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-r.Clock.After(install.PollInterval):
		}
	}
}

// credentialHere returns the agent's credential if it is for the hub of its bootstrap
// kubeconfig, and nil otherwise.
func (r Runner) credentialHere(ctx context.Context, namespace string) (map[string][]byte, error) {
	stored, err := lookup.SecretData(ctx, r.Client, namespace, names.HubKubeconfigSecret)
	if err != nil || len(stored[names.KeyKubeconfig]) == 0 {
		return nil, err
	}
	bootstrap, err := StoredBootstrap(ctx, r.Client)
	if err != nil && !errors.Is(err, kubeconfig.ErrInvalid) { // The agent does without.
		return nil, err
	}
	hub, err := kubeconfig.ParseHub(stored[names.KeyKubeconfig])
	if err != nil || bootstrap != nil && !hub.SameServer(*bootstrap) {
		return nil, nil //nolint:nilerr,nilnil // The agent replaces it.
	}
	return stored, nil
}

// AwaitKey waits until the agent has made the key that it asks the hub to
// certify, and returns its fingerprint. It returns "" when the agent has a
// certificate already and asks for none. What it registered with before it was to
// have one does not count.
func (r Runner) AwaitKey(ctx context.Context) (fingerprint string, err error) {
	err = r.Step(ctx, "Waiting for the agent's request", func(ctx context.Context, _ install.Say) error {
		fingerprint, err = r.key(ctx, ctx.Done())
		return err
	})
	return fingerprint, err
}

// OwnKey returns a function that returns the fingerprint of the key that the agent asks
// the hub to certify now; "" until there is one. An agent that is given another bootstrap
// kubeconfig makes another key. When the hub has issued the certificate, the agent deletes
// its pending key, and the function returns the last one that it saw, at first known.
func (r Runner) OwnKey(known string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		namespace, err := r.agentNamespace(ctx)
		if err != nil {
			return "", err
		}
		now, err := r.pendingKey(ctx, namespace)
		known = cmp.Or(now, known)
		return known, err
	}
}

// pendingKey returns the fingerprint of the key that waits for a certificate, or "". A key
// for another hub, or another address of the hub, than that of the bootstrap kubeconfig is
// one that the agent is about to replace.
func (r Runner) pendingKey(ctx context.Context, namespace string) (fingerprint string, err error) {
	pending, err := lookup.SecretData(ctx, r.Client, namespace, names.PendingCredentialSecret)
	if err != nil {
		return "", err
	}
	bootstrap, err := StoredBootstrap(ctx, r.Client)
	if err != nil && !errors.Is(err, kubeconfig.ErrInvalid) {
		return "", err
	}
	if hub := string(pending[names.KeyPendingHub]); bootstrap != nil && hub != "" && bootstrap.Digest() != hub {
		return "", nil
	}
	key, err := pemutil.ParseKey(pending[names.KeyTLSKey])
	if err != nil {
		return "", nil //nolint:nilerr // The agent makes another.
	}
	return pemutil.KeyFingerprint(key.Public())
}

// GlimpseKey is AwaitKey for a caller that does not depend on the key: when the
// agent has made none for so long, there is no error and no key.
func (r Runner) GlimpseKey(ctx context.Context, patience time.Duration) (fingerprint string, err error) {
	err = r.Step(ctx, "Waiting for the agent's key", func(ctx context.Context, say install.Say) error {
		patient, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		fingerprint, err = r.key(ctx, patient.Done())
		if err != nil && ctx.Err() == nil && patient.Err() != nil {
			say("the agent has not made it yet")
			return nil
		}
		return err
	})
	return fingerprint, err
}

// key looks for the agent's key until done.
func (r Runner) key(ctx context.Context, done <-chan struct{}) (fingerprint string, err error) {
	namespace, err := r.agentNamespace(ctx)
	if err != nil {
		return "", err
	}
	for {
		if key, err := r.pendingKey(ctx, namespace); err != nil || key != "" {
			return key, err
		}
		issued, err := r.credentialHere(ctx, namespace)
		if err != nil || len(issued[names.KeyTLSCert]) > 0 {
			return "", err
		}
		select {
		case <-done:
			return "", cmp.Or(ctx.Err(), context.DeadlineExceeded)
		case <-r.Clock.After(install.PollInterval):
		}
	}
}

// StoredBootstrap returns the bootstrap kubeconfig of the installed agent; nil
// when there is none.
func StoredBootstrap(ctx context.Context, c client.Client) (*kubeconfig.Hub, error) {
	live, err := lookup.Klusterlet(ctx, c)
	if err != nil || live == nil {
		return nil, err
	}
	data, err := lookup.SecretData(ctx, c, lookup.Namespace(live), names.BootstrapHubKubeconfigSecret)
	if err != nil || len(data[names.KeyKubeconfig]) == 0 {
		return nil, err
	}
	hub, err := kubeconfig.ParseHub(data[names.KeyKubeconfig])
	if err != nil {
		return nil, fmt.Errorf("secret %s: %w", names.BootstrapHubKubeconfigSecret, err)
	}
	return &hub, nil
}

func named(klusterlet string) *operatorv1.Klusterlet {
	return &operatorv1.Klusterlet{ObjectMeta: metav1.ObjectMeta{Name: klusterlet}}
}

// checkName checks that the name is free on the hub, or this cluster's own.
func checkName(f install.Facts, k Values, onHub *clusterv1.ManagedCluster) []install.Finding {
	own := f.Klusterlet != nil && f.Klusterlet.Spec.ClusterName == k.ClusterName
	// A name that the hub does not accept is free: no cluster requested it yet, or the
	// cluster that had it has left.
	if onHub == nil || own || !onHub.Spec.HubAcceptsClient {
		return nil
	}
	if f.Hidden {
		return []install.Finding{{
			Check: install.CheckClusterName, Severity: install.Warning,
			Message: fmt.Sprintf("the hub knows a cluster %q already; whether it is this one is not known, because the Klusterlet of this cluster cannot be read", k.ClusterName),
			Try:     "run the command with permission to get klusterlets",
		}}
	}
	finding := install.Finding{
		Check: install.CheckClusterName, Severity: install.Warning,
		Message: fmt.Sprintf("the hub knows a cluster %q already", k.ClusterName),
		Try:     "if it was this cluster, continue; otherwise choose another name",
	}
	for _, c := range onHub.Status.Conditions {
		if c.Type == clusterv1.ManagedClusterConditionAvailable && c.Status == metav1.ConditionTrue {
			finding.Severity = install.Fatal
			finding.Message = fmt.Sprintf("the name %q is taken: another cluster is connected to the hub under it", k.ClusterName)
			finding.Try = "choose another name, or unjoin the other cluster first"
		}
	}
	return []install.Finding{finding}
}

// Klusterlet returns the Klusterlet of the installed agent, nil if there is none.
func (r Runner) Klusterlet(ctx context.Context) (*operatorv1.Klusterlet, error) {
	return lookup.Klusterlet(ctx, r.Client)
}

// Hidden reports whether we may not read the Klusterlet, so that it is not known whether
// there is an agent.
func (r Runner) Hidden(ctx context.Context) (bool, error) {
	_, hidden, err := lookup.GetReadable(ctx, r.Client, client.ObjectKey{Name: names.KlusterletName}, &operatorv1.Klusterlet{})
	return hidden, err
}

// ClusterName returns the name under which this cluster has joined, or asked
// to, and "" when it has no agent.
func (r Runner) ClusterName(ctx context.Context) (string, error) {
	live, err := lookup.Klusterlet(ctx, r.Client)
	if err != nil || live == nil {
		return "", err
	}
	return r.clusterName(ctx, live)
}
