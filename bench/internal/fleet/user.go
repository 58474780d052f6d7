package fleet

import (
	"context"
	"net/http"
	"testing"

	"k8s.io/client-go/transport"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
)

type clusterKey struct{}

// AsAgent has the requests of a client of Agents be those of the agent of a cluster, whom
// the API server authorizes as it does every agent.
func AsAgent(ctx context.Context, cluster string) context.Context {
	return context.WithValue(ctx, clusterKey{}, cluster)
}

// Agents is a client for the requests of all agents, whose name is "agent": ten
// thousand connections do not fit on a machine.
func Agents(b *testing.B, hub *controlplane.Own) client.Client {
	b.Helper()
	config := hub.Config(b)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return agents{next} })
	return hub.ClientFor(b, config)
}

type agents struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (a agents) RoundTrip(request *http.Request) (*http.Response, error) {
	cluster, ok := request.Context().Value(clusterKey{}).(string)
	if !ok {
		return a.next.RoundTrip(request)
	}
	return transport.NewImpersonatingRoundTripper(transport.ImpersonationConfig{
		UserName: names.AgentUser(cluster, "agent"),
		Groups:   []string{names.ClusterGroup(cluster), names.GroupManagedClusters, "system:authenticated"},
	}, a.next).RoundTrip(request)
}
