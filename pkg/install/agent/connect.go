package agent

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// HubConnection returns the connection that the agent has to its hub, and what
// releases it.
func (r Runner) HubConnection(ctx context.Context, a Installed) (config *rest.Config, release func(), err error) {
	setup, settings := r.driverOf(a.Klusterlet)
	connector, ok := setup.(driver.Connector)
	if !ok {
		config, err = a.HubConfig()
		return config, func() {}, err
	}
	hub, err := a.Hub.Contained(a.Data)
	if err != nil {
		return nil, nil, fmt.Errorf("secret %s: %w", names.HubKubeconfigSecret, err)
	}
	conn, err := connector.Connect(ctx, r.Client, driver.Installed{
		Identity: driver.Identity{Cluster: a.Cluster(), Agent: string(a.Data[names.KeyAgentName])},
		Settings: settings, Hub: hub, Data: a.Data,
		Account: client.ObjectKey{Namespace: a.Namespace(), Name: names.RegistrationAgentServiceAccount(a.Klusterlet.Name)},
	})
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("connection of the agent to its hub: %w", err)
	case conn == nil:
		config, err = a.HubConfig()
		return config, func() {}, err
	}
	return conn.Config(), conn.Close, nil
}

// driverOf returns the driver of a Klusterlet and its settings; nil if this version does
// not have the driver.
func (r Runner) driverOf(k *operatorv1.Klusterlet) (driver.Setup, operatorv1.RegistrationDriver) {
	var settings operatorv1.RegistrationDriver
	if c := k.Spec.RegistrationConfiguration; c != nil {
		settings = c.RegistrationDriver
	}
	setup, err := r.Drivers.Parse(settings.AuthType)
	if err != nil {
		return nil, settings
	}
	return setup, settings
}

// Resigned reports whether the hub has denied a cluster or lost it, as far as the
// bootstrap kubeconfig shows. A cloud provider that denies an identity does not say
// whose decision that is.
func (r Runner) Resigned(ctx context.Context, cluster string, connect func(*rest.Config) (client.Client, error)) (bool, error) {
	bootstrap, err := StoredBootstrap(ctx, r.Client)
	if err != nil || bootstrap == nil {
		return false, err
	}
	contained, err := bootstrap.Contained(nil)
	if err != nil {
		return false, fmt.Errorf("secret %s: %w", names.BootstrapHubKubeconfigSecret, err)
	}
	config, err := contained.Config()
	if err != nil {
		return false, err
	}
	hub, err := connect(config)
	if err != nil {
		return false, err
	}
	known := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: cluster}}
	err = hub.Get(ctx, client.ObjectKeyFromObject(known), known)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	return err == nil && !known.Spec.HubAcceptsClient, err
}
