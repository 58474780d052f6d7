package tokenauthorizer

import (
	"context"
	"fmt"

	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/authorizer"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/config"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/jwks"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/review"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/subject"
)

// Trial is the chain of a token authorizer outside of the role: commands ask it
// what the authorizer would decide.
type Trial struct {
	authorizer *authorizer.Authorizer
}

// TrialConfig is the part of a Trial's configuration that differs from the role's.
type TrialConfig struct {
	// Config and Keys are the authorizer's configuration; FromHub is set if it would
	// use keys that clusters publish on the hub. The Trial configures Keys.
	Config  *config.Config
	Keys    *jwks.Store
	FromHub bool
	// Minter stands for the exchange, and Reviewer for the review of clusters
	// that have one.
	Minter   authorizer.Minter
	Reviewer authorizer.Reviewer
	Clock    clock.PassiveClock
}

// NewTrial returns a Trial.
func NewTrial(c TrialConfig) (*Trial, error) {
	keys := c.Config.Keys()
	if c.FromHub {
		keys = withEveryone(keys)
	}
	chain, err := authorizer.New(authorizer.Config{Minter: c.Minter, Clock: c.Clock})
	if err != nil {
		return nil, err
	}
	rules, clusters := map[string]*subject.Rules{}, map[string]*authorizer.Cluster{}
	for i := range c.Config.Clusters {
		from := &c.Config.Clusters[i]
		made := &authorizer.Cluster{Rules: from.Policy}
		if from.Review.Mode != "" && from.Review.Mode != review.Never {
			made.Reviewer = c.Reviewer
		}
		rules[from.Name()], clusters[from.Name()] = &from.Token, made
	}
	verifier := subject.NewVerifier(nil, nil, c.Clock)
	publish := func(keys *jwks.View) { chain.Swap(snapshot(verifier, keys, rules, clusters)) }
	if err := c.Keys.Configure(keys, publish); err != nil {
		return nil, fmt.Errorf("keys: %w", err)
	}
	return &Trial{authorizer: chain}, nil
}

// Explain takes a token through the chain and informs trace about it.
func (t *Trial) Explain(ctx context.Context, token string, trace authorizer.Trace) (authorizer.Decision, error) {
	return t.authorizer.Explain(ctx, authorizer.Request{Token: token}, trace)
}
