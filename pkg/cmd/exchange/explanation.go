package exchange

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/rules"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/access"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/authorizer"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/denial"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/mint"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/policy"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/subject"
)

// explanationKind is the kind of an explanation in the machine formats.
const explanationKind = "TokenExchangeExplanation"

// explanation is the stable schema of what "explain" prints.
type explanation struct {
	Allowed bool `json:"allowed"`
	// Reason and Detail say why not; Status is what a client would get.
	Reason string `json:"reason,omitempty"`
	Status int    `json:"httpStatus,omitempty"`
	Detail string `json:"detail,omitempty"`

	Cluster  string       `json:"cluster,omitempty"`
	Workload *workload    `json:"workload,omitempty"`
	Rule     string       `json:"rule,omitempty"`
	Target   *grantTarget `json:"target,omitempty"`
	Steps    []step       `json:"steps"`

	// issued is the token of a trial.
	issued mint.Token
	err    error
}

var _ authorizer.Trace = &explanation{}

type workload struct {
	Namespace string     `json:"namespace"`
	Name      string     `json:"name"`
	UID       string     `json:"uid,omitempty"`
	Pod       string     `json:"pod,omitempty"`
	Node      string     `json:"node,omitempty"`
	NotAfter  *time.Time `json:"notAfter,omitempty"`
}

type grantTarget struct {
	Namespace string   `json:"namespace"`
	Name      string   `json:"name"`
	Audiences []string `json:"audiences,omitempty"`
	// ExpirationSeconds is what is asked for; the hub may give less.
	ExpirationSeconds int64 `json:"expirationSeconds"`
}

// outcome is how a step ended.
type outcome string

const (
	passed  outcome = "ok"
	failed  outcome = "failed"
	skipped outcome = "skipped" // it decided nothing
)

type step struct {
	Check   string  `json:"check"`
	Outcome outcome `json:"outcome"`
	Reason  string  `json:"reason,omitempty"`
	Detail  string  `json:"detail,omitempty"`
}

// Checked implements authorizer.Trace.
func (e *explanation) Checked(s subject.Step) {
	var err error
	if s.Denial != nil {
		err = s.Denial
	}
	e.step(s.Name, err, s.Detail)
}

func (e *explanation) step(name string, err error, detail string) {
	s := step{Check: name, Outcome: passed, Detail: detail}
	if err != nil {
		denied := denial.Of(err)
		s.Outcome, s.Reason, s.Detail = failed, string(denied.Reason), denied.Detail
	}
	e.Steps = append(e.Steps, s)
}

func (e *explanation) skip(name, detail string) {
	e.Steps = append(e.Steps, step{Check: name, Outcome: skipped, Detail: detail})
}

// identify takes what was proven.
func (e *explanation) identify(id subject.Identity) {
	e.Cluster = id.Cluster
	if id.Account.Name == "" {
		return
	}
	e.Workload = &workload{
		Namespace: id.Account.Namespace, Name: id.Account.Name, UID: id.Account.UID, Pod: id.Bound.Pod.Name, Node: id.Bound.Node.Name,
	}
	if !id.Token.NotAfter.IsZero() {
		e.Workload.NotAfter = &id.Token.NotAfter
	}
}

func (e *explanation) refuse(err error) {
	denied := denial.Of(err)
	e.err, e.Allowed = err, false
	e.Reason, e.Detail, e.Status = string(denied.Reason), denied.Detail, status(denied.Reason.Class())
}

func status(c denial.Class) int {
	return map[denial.Class]int{denial.Unauthenticated: 401, denial.Forbidden: 403, denial.Limited: 429, denial.Unavailable: 503}[c]
}

// last adds the denial as a step, unless the step that refused is there.
func (e *explanation) last(err error) {
	if n := len(e.Steps); n > 0 && e.Steps[n-1].Outcome == failed {
		return
	}
	name := "policy"
	if e.Target != nil {
		name = "exchange"
	}
	e.step(name, err, "")
}

// Considered implements authorizer.Trace.
func (e *explanation) Considered(c policy.Considered) {
	if c.Matched {
		e.step("rule "+c.Rule, nil, "it matches, and decides")
		return
	}
	e.skip("rule "+c.Rule, c.Missed)
}

// Granted implements authorizer.Trace.
func (e *explanation) Granted(g policy.Grant) {
	e.Rule = g.Rule
	e.Target = &grantTarget{
		Namespace: g.Target.Namespace, Name: g.Target.Name, Audiences: g.Target.Audiences,
		ExpirationSeconds: int64(g.Target.Expiration.Seconds()),
	}
	e.step("policy", nil, fmt.Sprintf("it becomes ServiceAccount %s/%s of the hub", g.Target.Namespace, g.Target.Name))
}

// target checks what the exchange needs on the hub, without making one.
func (e *explanation) target(ctx context.Context, source *rules.Source, target policy.Target) error {
	var account corev1.ServiceAccount
	err := source.Hub().Get(ctx, client.ObjectKey{Namespace: target.Namespace, Name: target.Name}, &account)
	switch {
	case apierrors.IsNotFound(err):
		missing := denial.New(denial.TargetMissing, "the hub has no ServiceAccount %s/%s", target.Namespace, target.Name)
		e.step("target", missing, "")
		return missing
	case apierrors.IsForbidden(err):
		e.skip("target", "you may not see whether the ServiceAccount exists")
	case err != nil:
		return err
	default:
		e.step("target", nil, "it exists, with UID "+string(account.UID))
	}
	return e.permission(ctx, source, target)
}

// permission asks whether the authorizer may do what it would have to.
func (e *explanation) permission(ctx context.Context, source *rules.Source, target policy.Target) error {
	self := rules.Self()
	allowed, err := access.Allowed(ctx, source.Hub(), types.NamespacedName(self), authorizationv1.ResourceAttributes{
		Namespace: target.Namespace, Verb: "create", Resource: "serviceaccounts", Subresource: "token", Name: target.Name,
	})
	switch {
	case apierrors.IsForbidden(err):
		e.skip("permission", "you may not see whether the authorizer may issue the token")
	case err != nil:
		return fmt.Errorf("permission of the token authorizer: %w", err)
	case !allowed:
		missing := denial.New(denial.HubForbidden, "ServiceAccount %s/%s may not issue tokens of %s/%s", self.Namespace, self.Name, target.Namespace, target.Name)
		e.step("permission", missing, "")
		return missing
	default:
		e.step("permission", nil, "the token authorizer may issue its tokens")
	}
	return nil
}

// The columns of the text.
const (
	markWidth  = 6
	checkWidth = 23
)

func (e *explanation) print(w io.Writer) error {
	_, err := io.WriteString(w, e.table()+"\n"+cli.Fold(e.summary(), "")+"\n")
	return err
}

// table has a line for each step.
func (e *explanation) table() string {
	var b strings.Builder
	hanging := strings.Repeat(" ", markWidth+checkWidth+1)
	for _, s := range e.Steps {
		mark := map[outcome]string{passed: "ok", failed: "FAIL", skipped: "-"}[s.Outcome]
		name := s.Check
		if len(name) > checkWidth { // A rule of a cluster with a long name.
			_, _ = fmt.Fprintf(&b, "%-*s%s\n", markWidth, mark, name)
			mark, name = "", ""
		}
		head := fmt.Sprintf("%-*s%-*s ", markWidth, mark, checkWidth, name)
		if s.Detail == "" {
			b.WriteString(strings.TrimRight(head, " ") + "\n")
			continue
		}
		b.WriteString(head + cli.Fold(hanging+s.Detail, hanging)[len(hanging):] + "\n")
	}
	return b.String()
}

func (e *explanation) summary() string {
	who := "The token"
	if e.Workload != nil {
		who = fmt.Sprintf("%s/%s of cluster %s", e.Workload.Namespace, e.Workload.Name, e.Cluster)
	}
	if !e.Allowed {
		return fmt.Sprintf("Refused: %s (HTTP %d). %s: %s.", e.Reason, e.Status, who, e.Detail)
	}
	life := time.Duration(e.Target.ExpirationSeconds) * time.Second
	return fmt.Sprintf("Allowed by %s: %s gets a token of ServiceAccount %s/%s of the hub for %s.",
		e.Rule, who, e.Target.Namespace, e.Target.Name, life)
}
