package authorizer

import (
	"context"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/mint"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/policy"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/subject"
)

// Verifier proves a subject token. An identity that it returns with an error has what
// was proven until then, above all its Cluster: it is for metrics and the audit log.
type Verifier interface {
	Verify(ctx context.Context, token string) (subject.Identity, error)
}

// Decider says what an identity may become under the rules of its cluster.
type Decider interface {
	Decide(id subject.Identity) (policy.Grant, error)
}

// Reviewer asks the managed cluster whether the token still stands.
type Reviewer interface {
	Review(ctx context.Context, cluster, token string, id subject.Identity) error
}

// Minter turns a grant into a token of the hub, and reports whether it was
// minted for an earlier request.
type Minter interface {
	Mint(ctx context.Context, r mint.Request) (mint.Token, bool, error)
}

// Auditor receives every decision. It must not block.
type Auditor interface {
	Record(e Event)
}

// Event is one decision, for the audit log.
type Event struct {
	Time time.Time
	// Took is how long the decision took.
	Took   time.Duration
	Origin Origin
	// Decision is complete if Err is nil; else it has what was found until then.
	Decision Decision
	// Err is why the request was refused, with a denial.Error in its chain.
	Err error
}

// Snapshot is one consistent configuration: the keys and the rules of one moment.
// It is not changed once it was handed to an Authorizer.
type Snapshot struct {
	// Verifier knows the keys and the token rules of this configuration.
	Verifier Verifier
	// Clusters by name; policy.AnyCluster is for those without their own. A cluster
	// without an entry is allowed nothing. As long as nothing about a cluster
	// changes, the next Snapshot has the same pointer: with another one, decisions
	// that are under way are made again.
	Clusters map[string]*Cluster
	// Generation returns the generation of a cluster's keys, which changes when a key
	// of the cluster is removed. Decisions in progress are then repeated. Nil is for
	// keys that are never removed.
	Generation func(cluster string) uint64
}

// Cluster is the processing of one cluster's identities.
type Cluster struct {
	Rules Decider
	// Reviewer is nil if the cluster asks for no review.
	Reviewer Reviewer
	// Generation changes when the cluster's rules do: a token that was minted
	// under another generation is not handed out. A generation for the whole
	// configuration is right too, and mints more.
	Generation uint64
}

// cluster returns the effective entry of a cluster, nil if there is none.
func (s *Snapshot) cluster(name string) *Cluster {
	if c, ok := s.Clusters[name]; ok {
		return c
	}
	return s.Clusters[policy.AnyCluster]
}

// agrees says whether what is decided about a cluster under s is decided under
// other as well.
func (s *Snapshot) agrees(other *Snapshot, cluster string) bool {
	return s == other ||
		s != nil && s.cluster(cluster) == other.cluster(cluster) && s.generation(cluster) == other.generation(cluster)
}

func (s *Snapshot) generation(cluster string) uint64 {
	if s.Generation == nil {
		return 0
	}
	return s.Generation(cluster)
}
