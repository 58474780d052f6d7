package explanation

import (
	"context"
	"fmt"
	"time"

	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/config"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/issuers"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/jwks"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/mint"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/rulestore"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/subject"
)

// patience bounds one evaluation, which may request keys from a server.
const patience = 10 * time.Second

// Warn reports keys that the token authorizer ignores, as a format and its arguments.
type Warn func(format string, args ...any)

// Exchange replaces the exchange of a request that the rules allow.
type Exchange func(ctx context.Context, e *Explanation, r mint.Request) (mint.Token, error)

// Chain is that of a token authorizer with the same rules and keys.
type Chain struct {
	store  *rulestore.Store
	config *config.Config
	trial  *tokenauthorizer.Trial

	// explaining is the evaluation that runs, and exchange its exchange.
	explaining *Explanation
	exchange   Exchange
}

// NewChain reads the rules of a store and, from its hub, the keys that clusters publish.
func NewChain(ctx context.Context, store *rulestore.Store, clk clock.WithTicker, warn Warn) (*Chain, error) {
	c := &Chain{store: store}
	var err error
	if c.config, err = store.Config(ctx, store.Options()); err != nil {
		return nil, err
	}
	keys := jwks.New(jwks.Config{Clock: clk})
	c.trial, err = tokenauthorizer.NewTrial(tokenauthorizer.TrialConfig{
		Config: c.config, Keys: keys, FromHub: store.Hub() != nil, Minter: c, Reviewer: c, Clock: clk,
	})
	if err != nil || store.Hub() == nil {
		return c, err
	}
	return c, c.publish(ctx, keys, warn)
}

// publish adds the keys that clusters publish on the hub.
func (c *Chain) publish(ctx context.Context, keys *jwks.Store, warn Warn) error {
	candidates, err := issuers.Candidates(ctx, c.store.Hub())
	if err != nil {
		return err
	}
	for _, candidate := range candidates {
		silent := candidate.Cluster.Silent()
		err := keys.Observe(candidate)
		switch {
		case candidate.Data == nil:
		case silent.Reason != "":
			warn("Cluster %s publishes keys that do not count: %s.", candidate.Cluster.Name, silent.Message)
		case err != nil:
			warn("%v.", err)
		}
	}
	keys.HubSynced()
	return nil
}

// Store returns the store of the rules.
func (c *Chain) Store() *rulestore.Store { return c.store }

// Explain evaluates a token, and checks what its exchange needs on the hub without making it.
func (c *Chain) Explain(ctx context.Context, token string) *Explanation {
	return c.ExplainWith(ctx, token, c.dry)
}

// ExplainWith evaluates a token with another exchange at the end of the chain.
func (c *Chain) ExplainWith(ctx context.Context, token string, do Exchange) *Explanation {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	e := &Explanation{}
	c.explaining, c.exchange = e, do
	decision, err := c.trial.Explain(ctx, token, e)
	e.identify(decision.Identity)
	if err != nil {
		e.refuse(err)
		e.last(err)
		return e
	}
	e.Allowed, e.issued = true, decision.Token
	return e
}

// Audience returns the first audience that the rules require of the tokens of a cluster, or
// "". Any token of the cluster identifies it.
func (c *Chain) Audience(ctx context.Context, token string) string {
	// Most of the time the token is denied for its audience.
	probe := c.ExplainWith(ctx, token, func(context.Context, *Explanation, mint.Request) (mint.Token, error) {
		return mint.Token{}, nil
	})
	cluster, ok := c.config.Cluster(probe.Cluster)
	if !ok || len(cluster.Token.Audiences) == 0 {
		return ""
	}
	return cluster.Token.Audiences[0]
}

// Mint implements authorizer.Minter.
func (c *Chain) Mint(ctx context.Context, r mint.Request) (mint.Token, bool, error) {
	token, err := c.exchange(ctx, c.explaining, r)
	return token, false, err
}

// Review implements authorizer.Reviewer: it sends the token nowhere.
func (c *Chain) Review(_ context.Context, cluster, _ string, _ subject.Identity) error {
	if entry, ok := c.config.Cluster(cluster); ok {
		c.explaining.skip("review", fmt.Sprintf("the authorizer also asks the cluster (%s); that is not done here", entry.Review.Mode))
	}
	return nil
}

// dry checks what the exchange needs on the hub.
func (c *Chain) dry(ctx context.Context, e *Explanation, r mint.Request) (mint.Token, error) {
	if c.store.Hub() == nil {
		return mint.Token{}, nil
	}
	return mint.Token{}, e.target(ctx, c.store.Hub(), r.Target)
}
