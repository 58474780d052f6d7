package explanation

import (
	"context"
	"fmt"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/access"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/authorizer"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/denial"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/mint"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/policy"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/rulestore"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/subject"
)

// Explanation is the stable schema of how the token authorizer evaluates a token.
type Explanation struct {
	Allowed bool `json:"allowed"`
	// Reason and Detail say why not; Status is what a client would get.
	Reason string `json:"reason,omitempty"`
	Status int    `json:"httpStatus,omitempty"`
	Detail string `json:"detail,omitempty"`

	Cluster  string    `json:"cluster,omitempty"`
	Workload *Workload `json:"workload,omitempty"`
	Rule     string    `json:"rule,omitempty"`
	Target   *Target   `json:"target,omitempty"`
	Steps    []Step    `json:"steps"`

	issued mint.Token
	err    error
}

var _ authorizer.Trace = &Explanation{}

// Token returns the token that the hub issued, if the exchange was made.
func (e *Explanation) Token() mint.Token { return e.issued }

// Err returns the denial, or the error that ended the evaluation.
func (e *Explanation) Err() error { return e.err }

// Workload is the identity that the token proves.
type Workload struct {
	Namespace string     `json:"namespace"`
	Name      string     `json:"name"`
	UID       string     `json:"uid,omitempty"`
	Pod       string     `json:"pod,omitempty"`
	Node      string     `json:"node,omitempty"`
	NotAfter  *time.Time `json:"notAfter,omitempty"`
}

// Target is the ServiceAccount of the hub that a rule grants.
type Target struct {
	Namespace string   `json:"namespace"`
	Name      string   `json:"name"`
	Audiences []string `json:"audiences,omitempty"`
	// ExpirationSeconds is the requested lifetime; the hub may issue a shorter one.
	ExpirationSeconds int64 `json:"expirationSeconds"`
}

// Outcome is how a step ended.
type Outcome string

// The outcomes.
const (
	Passed  Outcome = "ok"
	Failed  Outcome = "failed"
	Skipped Outcome = "skipped" // it decided nothing
)

// Step is one check of the token.
type Step struct {
	Check   string  `json:"check"`
	Outcome Outcome `json:"outcome"`
	Reason  string  `json:"reason,omitempty"`
	Detail  string  `json:"detail,omitempty"`
}

// Checked implements authorizer.Trace.
func (e *Explanation) Checked(s subject.Step) {
	var err error
	if s.Denial != nil {
		err = s.Denial
	}
	e.Record(s.Name, err, s.Detail)
}

// Record adds a step, with an error one that failed.
func (e *Explanation) Record(name string, err error, detail string) {
	s := Step{Check: name, Outcome: Passed, Detail: detail}
	if err != nil {
		denied := denial.Of(err)
		s.Outcome, s.Reason, s.Detail = Failed, string(denied.Reason), denied.Detail
	}
	e.Steps = append(e.Steps, s)
}

func (e *Explanation) skip(name, detail string) {
	e.Steps = append(e.Steps, Step{Check: name, Outcome: Skipped, Detail: detail})
}

// identify takes what was proven.
func (e *Explanation) identify(id subject.Identity) {
	e.Cluster = id.Cluster
	if id.Account.Name == "" {
		return
	}
	e.Workload = &Workload{
		Namespace: id.Account.Namespace, Name: id.Account.Name, UID: id.Account.UID, Pod: id.Bound.Pod.Name, Node: id.Bound.Node.Name,
	}
	if !id.Token.NotAfter.IsZero() {
		e.Workload.NotAfter = &id.Token.NotAfter
	}
}

func (e *Explanation) refuse(err error) {
	denied := denial.Of(err)
	e.err, e.Allowed = err, false
	e.Reason, e.Detail, e.Status = string(denied.Reason), denied.Detail, status(denied.Reason.Class())
}

func status(c denial.Class) int {
	return map[denial.Class]int{denial.Unauthenticated: 401, denial.Forbidden: 403, denial.Limited: 429, denial.Unavailable: 503}[c]
}

// last adds the denial as a step, unless the step that refused is there.
func (e *Explanation) last(err error) {
	if n := len(e.Steps); n > 0 && e.Steps[n-1].Outcome == Failed {
		return
	}
	name := "policy"
	if e.Target != nil {
		name = "exchange"
	}
	e.Record(name, err, "")
}

// Considered implements authorizer.Trace.
func (e *Explanation) Considered(c policy.Considered) {
	if c.Matched {
		e.Record("rule "+c.Rule, nil, "it matches, and decides")
		return
	}
	e.skip("rule "+c.Rule, c.Missed)
}

// Granted implements authorizer.Trace.
func (e *Explanation) Granted(g policy.Grant) {
	e.Rule = g.Rule
	e.Target = &Target{
		Namespace: g.Target.Namespace, Name: g.Target.Name, Audiences: g.Target.Audiences,
		ExpirationSeconds: int64(g.Target.Expiration.Seconds()),
	}
	e.Record("policy", nil, fmt.Sprintf("it becomes ServiceAccount %s/%s of the hub", g.Target.Namespace, g.Target.Name))
}

// target checks what the exchange needs on the hub, without making one.
func (e *Explanation) target(ctx context.Context, hub client.Client, target policy.Target) error {
	var account corev1.ServiceAccount
	err := hub.Get(ctx, client.ObjectKey{Namespace: target.Namespace, Name: target.Name}, &account)
	switch {
	case apierrors.IsNotFound(err):
		missing := denial.New(denial.TargetMissing, "the hub has no ServiceAccount %s/%s", target.Namespace, target.Name)
		e.Record("target", missing, "")
		return missing
	case apierrors.IsForbidden(err):
		e.skip("target", "you may not see whether the ServiceAccount exists")
	case err != nil:
		return err
	default:
		e.Record("target", nil, "it exists, with UID "+string(account.UID))
	}
	return e.permission(ctx, hub, target)
}

// permission asks whether the authorizer may do what it would have to.
func (e *Explanation) permission(ctx context.Context, hub client.Client, target policy.Target) error {
	self := rulestore.Self()
	allowed, err := access.Allowed(ctx, hub, types.NamespacedName(self), authorizationv1.ResourceAttributes{
		Namespace: target.Namespace, Verb: "create", Resource: "serviceaccounts", Subresource: "token", Name: target.Name,
	})
	switch {
	case apierrors.IsForbidden(err):
		e.skip("permission", "you may not see whether the authorizer may issue the token")
	case err != nil:
		return fmt.Errorf("permission of the token authorizer: %w", err)
	case !allowed:
		missing := denial.New(denial.HubForbidden, "ServiceAccount %s/%s may not issue tokens of %s/%s", self.Namespace, self.Name, target.Namespace, target.Name)
		e.Record("permission", missing, "")
		return missing
	default:
		e.Record("permission", nil, "the token authorizer may issue its tokens")
	}
	return nil
}
