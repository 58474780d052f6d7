package drivertest

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/kubeconfig"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/hubclient"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// fakePlugin is the credential plugin of the fake driver's kubeconfigs. There is no
// such program: an agent that ran it instead of connecting by itself would fail.
const fakePlugin = "fake-credential-plugin"

var _ driver.Agent = (*FakeAgent)(nil)

// FakeAgent is the agent's side of a driver whose credential is no file, has no
// certificate and no end: an identity of the service Outside, which lets a request
// through while it has an entry for it. It holds nothing that another process would
// not know.
type FakeAgent struct {
	// Identity is who the agent is, and ID its identifier outside.
	Identity driver.Identity
	ID       string
	// Outside is the service.
	Outside *Outside
	// Certificate is the client certificate of connections that the service lets
	// through: a test has no API server that asks the service.
	Certificate tls.Certificate
}

// Decorate implements driver.Agent.
func (a *FakeAgent) Decorate(cluster *clusterv1.ManagedCluster) {
	for key, value := range FakeIdentity(a.ID) {
		metav1.SetMetaDataAnnotation(&cluster.ObjectMeta, key, value)
	}
}

// Permissions implements driver.Agent.
func (a *FakeAgent) Permissions() []authorizationv1.ResourceAttributes { return nil }

// User implements driver.Credential.
func (a *FakeAgent) User() clientcmdapi.AuthInfo {
	return clientcmdapi.AuthInfo{Exec: &clientcmdapi.ExecConfig{
		APIVersion: "client.authentication.k8s.io/v1", Command: fakePlugin, Args: []string{a.ID},
		InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
	}}
}

// Inspect implements driver.Credential.
func (a *FakeAgent) Inspect(stored driver.Data) (credential.Validity, error) {
	id, err := fakeID(stored)
	if err != nil {
		return credential.Validity{}, err
	}
	if id != a.ID {
		return credential.Validity{}, fmt.Errorf("%w: it is for %q", credential.ErrWrongIdentity, id)
	}
	return credential.Unlimited(), nil
}

// fakeID is the identifier in a hub kubeconfig Secret.
func fakeID(stored driver.Data) (string, error) {
	if len(stored[names.KeyKubeconfig]) == 0 {
		return "", credential.ErrMissing
	}
	hub, err := kubeconfig.ParseHub(stored[names.KeyKubeconfig])
	if err != nil {
		return "", fmt.Errorf("%w: %w", credential.ErrMalformed, err)
	}
	if exec := hub.User.Exec; exec != nil && exec.Command == fakePlugin && len(exec.Args) == 1 {
		return exec.Args[0], nil
	}
	return "", fmt.Errorf("%w: another driver's", credential.ErrWrongIdentity)
}

// Fingerprint implements driver.Agent.
func (a *FakeAgent) Fingerprint(stored driver.Data) string {
	id, err := fakeID(stored)
	if err != nil {
		return ""
	}
	return "fingerprint of " + id
}

// Renewal implements driver.Credential.
func (a *FakeAgent) Renewal() credential.RenewalPolicy { return credential.Certificates() }

// Report implements driver.Credential.
func (a *FakeAgent) Report() driver.Report { return driver.Report{Event: "FakeGranted"} }

// Obtain implements driver.Credential: an accepted cluster has all that it needs.
func (a *FakeAgent) Obtain(ctx context.Context, hub client.Client, _ driver.Data) (driver.Step, error) {
	cluster := &clusterv1.ManagedCluster{}
	if err := hub.Get(ctx, client.ObjectKey{Name: a.Identity.Cluster}, cluster); err != nil {
		return driver.Step{}, err
	}
	accepted := apimeta.FindStatusCondition(cluster.Status.Conditions, clusterv1.ManagedClusterConditionHubAccepted)
	switch {
	case accepted == nil:
		return driver.Step{Watch: cluster, After: patience, Waiting: driver.Waiting{Reason: "Unaccepted", Message: "waiting for the hub"}}, nil
	case accepted.Status != metav1.ConditionTrue:
		return driver.Step{Watch: cluster, After: patience, Failing: true, Waiting: driver.Waiting{Reason: "Denied", Message: "the hub denies the cluster"}}, nil
	}
	return driver.Step{Issued: &driver.Issued{Validity: credential.Unlimited()}}, nil
}

// Open implements driver.Agent.
func (a *FakeAgent) Open(hub kubeconfig.Hub, dir string, stored driver.Data) (driver.Connection, error) {
	if _, err := a.Inspect(stored); err != nil {
		return nil, err
	}
	base, err := hubclient.New(hub, dir, func() (*tls.Certificate, error) { return &a.Certificate, nil })
	if err != nil {
		return nil, err
	}
	return &fakeConnection{Conn: base, agent: a}, nil
}

// fakeConnection asks the service before each request.
type fakeConnection struct {
	*hubclient.Conn

	agent *FakeAgent
}

// Config implements driver.Connection.
func (c *fakeConnection) Config() *rest.Config {
	config := c.Conn.Config()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return asking{c.agent, next} })
	return config
}

// Reload implements driver.Connection.
func (c *fakeConnection) Reload(stored driver.Data) error {
	_, err := c.agent.Inspect(stored)
	return err
}

// errNoEntry is the answer of the service about an identity without an entry.
var errNoEntry = fmt.Errorf("%w: the fake service has no entry for this identity", driver.ErrDenied)

type asking struct {
	agent *FakeAgent
	next  http.RoundTripper
}

func (a asking) RoundTrip(r *http.Request) (*http.Response, error) {
	entry := FakeEntry(a.agent.ID) + " is group " + names.MappedClusterGroup(a.agent.Identity.Cluster)
	if !slices.Contains(a.agent.Outside.Objects(), entry) {
		return nil, errNoEntry
	}
	return a.next.RoundTrip(r)
}
