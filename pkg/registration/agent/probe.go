package agent

import (
	"context"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pause"
)

// probes is the back-off of requests to a hub that did not respond.
func probes() credential.Backoff {
	return credential.Backoff{First: time.Second, Most: 10 * time.Second}
}

// alarm signals a request to the hub without a response.
type alarm struct {
	next   http.RoundTripper
	failed wakeup
}

// RoundTrip implements http.RoundTripper.
func (a alarm) RoundTrip(req *http.Request) (*http.Response, error) {
	response, err := a.next.RoundTrip(req)
	if err != nil && req.Context().Err() == nil {
		a.failed.signal()
	}
	return response, err
}

// probe sends requests to the hub, after one got no response, until it responds: the
// next renewal of the lease may be minutes away. An agent that may not read its
// ManagedCluster has lost its permissions and reads the stored state again, because
// existing watches continue for a while. For a cluster that is being deleted that is
// expected.
func (c *connected) probe(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.unanswered:
		}
		for tries := 1; ctx.Err() == nil; tries++ {
			err := c.readOwn(ctx)
			if ctx.Err() != nil {
				return
			}
			if apierrors.IsForbidden(err) && c.acceptance.detaching.Load() == nil {
				c.end(errVanished)
				return
			}
			if err == nil || apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
				c.reach.observe(nil)
				break
			}
			c.reach.observe(fmt.Errorf("read the cluster: %w", err))
			pause.For(ctx, c.agent.config.Clock, probes().Delay(tries, c.snapshot.identity.Cluster))
		}
	}
}
