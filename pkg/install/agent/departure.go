package agent

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/kubeconfig"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pemutil"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/lookup"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// Departure describes the hub that a cluster leaves when it joins another one.
type Departure struct {
	// Hub is the address of the hub that the cluster has joined, and Cluster its name there.
	Hub, Cluster string
	// Works is how many ManifestWorks of that hub are applied, and Resources how many
	// objects they own. The next hub's work agent deletes these after its grace period.
	Works, Resources int
}

// Departure returns what the installed agent leaves when it joins the hub of a verified
// kubeconfig; nil if that is nothing: the cluster has joined none, its hub has detached it,
// its credential has expired, or that hub accepts the credential, and is the same one at
// another address. id is how the driver of the agent identifies that hub, empty if it does not.
func (r Runner) Departure(ctx context.Context, to kubeconfig.Hub, id string, connect func(*rest.Config) (client.Client, error)) (*Departure, error) {
	agent, err := r.credentialed(ctx)
	if err != nil || agent == nil || agent.Hub.Cluster.Server == to.Cluster.Server {
		return nil, err
	}
	if setup, settings := r.driverOf(agent.Klusterlet); setup != nil && id != "" && setup.HubID(settings) == id {
		return nil, nil //nolint:nilnil // nothing is left
	}
	if accepts(ctx, *agent, to, connect) {
		return nil, nil //nolint:nilnil // nothing is left
	}
	d := &Departure{Hub: agent.Hub.Cluster.Server, Cluster: agent.Cluster()}
	return d, r.countWorks(ctx, d)
}

// credentialed returns the agent if it has a credential of a hub that has not detached the
// cluster, and that has not expired; nil otherwise, or if we may not read it.
func (r Runner) credentialed(ctx context.Context) (*Installed, error) {
	klusterlet, err := lookup.Klusterlet(ctx, r.Client)
	if err != nil || klusterlet == nil {
		return nil, err
	}
	key := client.ObjectKey{Namespace: lookup.Namespace(klusterlet), Name: names.HubKubeconfigSecret}
	secret, err := lookup.Get(ctx, r.Client, key, &corev1.Secret{})
	if err != nil || secret == nil || len(secret.Data[names.KeyKubeconfig]) == 0 {
		return nil, err
	}
	if _, detached := secret.Annotations[names.AnnotationDetached]; detached {
		return nil, nil //nolint:nilnil // the credential is of no use
	}
	if certs, err := pemutil.ParseCertificates(secret.Data[names.KeyTLSCert]); err == nil && certs[0].NotAfter.Before(r.Clock.Now()) {
		return nil, nil //nolint:nilnil // the credential is of no use
	}
	hub, err := kubeconfig.ParseHub(secret.Data[names.KeyKubeconfig])
	if err != nil {
		return nil, nil //nolint:nilerr,nilnil // the agent replaces it
	}
	return &Installed{Klusterlet: klusterlet, Hub: &hub, Data: secret.Data}, nil
}

// accepts reports whether a hub knows the cluster by the credential of its agent. The hub
// was verified, and sees no key: a client certificate only proves that there is one. What
// else would be sent, such as the token of a cloud, is not for another hub.
func accepts(ctx context.Context, a Installed, hub kubeconfig.Hub, connect func(*rest.Config) (client.Client, error)) bool {
	stored, err := a.Hub.Contained(a.Data)
	if err != nil || len(stored.User.ClientCertificateData) == 0 || stored.User.Exec != nil || stored.User.Token != "" {
		return false
	}
	stored.Cluster = hub.Cluster
	config, err := stored.Config()
	if err != nil {
		return false
	}
	c, err := connect(config)
	return err == nil && c.Get(ctx, client.ObjectKey{Name: a.Cluster()}, &clusterv1.ManagedCluster{}) == nil
}

// countWorks counts what is applied of the hub that is left.
func (r Runner) countWorks(ctx context.Context, d *Departure) error {
	var list workv1.AppliedManifestWorkList
	if err := r.Client.List(ctx, &list); err != nil && !lookup.Gone(err) {
		return fmt.Errorf("AppliedManifestWorks: %w", err)
	}
	for i := range list.Items {
		if list.Items[i].Spec.HubHash == names.HubHash(d.Hub) {
			d.Works++
			d.Resources += len(list.Items[i].Status.AppliedResources)
		}
	}
	return nil
}
