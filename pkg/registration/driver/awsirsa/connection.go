package awsirsa

import (
	"context"

	"k8s.io/client-go/rest"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/kubeconfig"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/hubclient"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/ststoken"
)

// conn is a connection whose requests carry tokens that are signed when needed.
type conn struct {
	*hubclient.Conn

	agent  *Agent
	source *ststoken.Source
}

// Open implements driver.Agent. It reads the AWS configuration of the process and
// sends no request; an identity that cannot assume the role shows at the first one.
func (a *Agent) Open(hub kubeconfig.Hub, dir string, stored driver.Data) (driver.Connection, error) {
	if _, err := a.Inspect(stored); err != nil {
		return nil, err
	}
	// Nothing here waits: New reads files and environment variables only.
	source, err := ststoken.New(context.Background(), ststoken.Config{ //nolint:forbidigo // It sends no request.
		Cluster: a.config.Pair.Hub.Name, Region: a.config.Pair.Hub.Region, Role: a.config.Pair.HubRole().String(),
		Session: session(a.config.Identity.Cluster), Clock: a.config.Clock, Load: a.config.Load,
	})
	if err != nil {
		return nil, err
	}
	base, err := hubclient.New(hub, dir, nil)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: base, agent: a, source: source}, nil
}

// Config implements driver.Connection.
func (c *conn) Config() *rest.Config {
	config := c.Conn.Config()
	config.Wrap(c.source.Transport)
	return config
}

// Reload implements driver.Connection: the role of a connection does not change,
// so all that another Secret can bring is another credential.
func (c *conn) Reload(stored driver.Data) error {
	if _, err := c.agent.Inspect(stored); err != nil {
		return err
	}
	c.source.Forget()
	c.Reset()
	return nil
}

// session names the sessions of a cluster's agent in AWS's audit log; AWS allows
// 64 characters.
func session(cluster string) string {
	const longest = 64
	name := "ocm-" + cluster
	return name[:min(len(name), longest)]
}
