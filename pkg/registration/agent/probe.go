package agent

import (
	"context"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
)

// probes is how often a hub that did not answer is asked.
func probes() credential.Backoff {
	return credential.Backoff{First: time.Second, Most: 10 * time.Second}
}

// alarm rings a bell when a request on a connection to the hub gets no answer.
type alarm struct {
	next   http.RoundTripper
	failed bell
}

// RoundTrip implements http.RoundTripper.
func (a alarm) RoundTrip(req *http.Request) (*http.Response, error) {
	response, err := a.next.RoundTrip(req)
	if err != nil && req.Context().Err() == nil {
		a.failed.ring()
	}
	return response, err
}

// probe asks the hub, whenever a request got no answer, until it answers. The
// lease alone would notice only at its next renewal, which may be far. An agent
// that may not even read its ManagedCluster has lost its rights, which has to be
// looked into: what it watched before goes on for a while. Of a cluster that is
// being deleted that is expected.
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
			if apierrors.IsForbidden(err) && !c.acceptance.detaching.Load() {
				c.end(errVanished)
				return
			}
			if err == nil || apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
				c.reach.observe(nil)
				break
			}
			c.reach.observe(fmt.Errorf("read the cluster: %w", err))
			c.agent.sleep(ctx, probes().Delay(tries, c.snapshot.identity.Cluster))
		}
	}
}
