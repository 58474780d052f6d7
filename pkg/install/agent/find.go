package agent

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/kubeconfig"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/lookup"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// ErrNoAgent says that a cluster has no agent under the given name.
var ErrNoAgent = errors.New("no agent of that cluster is installed here")

// Installed is an installed agent.
type Installed struct {
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

// Find returns the agent that joined as cluster. Without any agent, but
// with an operator that an interrupted unjoin has left, Klusterlet is nil.
func (r Runner) Find(ctx context.Context, cluster string) (Installed, error) {
	var (
		a    Installed
		list operatorv1.KlusterletList
	)
	if err := r.Client.List(ctx, &list); err != nil && !lookup.Gone(err) {
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
	operator := install.DeploymentReady(names.OperatorNamespace, names.KlusterletOperator).Object
	err := r.Client.Get(ctx, client.ObjectKeyFromObject(operator), operator)
	if client.IgnoreNotFound(err) != nil {
		return a, fmt.Errorf("operator: %w", err)
	}
	a.Operator = err == nil
	switch {
	case i < 0 && (len(list.Items) > 0 || !a.Operator):
		return a, ErrNoAgent
	case i < 0:
		a.Works, err = Works(ctx, r.Client, nil, nil)
		return a, err
	}
	a.Klusterlet = &list.Items[i]
	if a.Works, err = Works(ctx, r.Client, a.Klusterlet, list.Items); err != nil {
		return a, err
	}
	return a, r.credential(ctx, &a)
}

// clusterName returns the name under which a Klusterlet's agent registers. Without
// one in the spec, the agent generates one and stores it with its credential.
func (r Runner) clusterName(ctx context.Context, k *operatorv1.Klusterlet) (string, error) {
	if k.Spec.ClusterName != "" {
		return k.Spec.ClusterName, nil
	}
	data, err := lookup.SecretData(ctx, r.Client, lookup.Namespace(k), names.HubKubeconfigSecret)
	return string(data[names.KeyClusterName]), err
}

// credential reads the hub kubeconfig of the agent, if there is one.
func (r Runner) credential(ctx context.Context, a *Installed) error {
	data, err := lookup.SecretData(ctx, r.Client, lookup.Namespace(a.Klusterlet), names.HubKubeconfigSecret)
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
