package policy

import (
	"slices"
	"strings"
)

// Request is a request with everything that policies can evaluate.
type Request struct {
	// Action is the called action, such as "iam:CreateRole".
	Action string
	// Resource is the ARN of the resource, or "*".
	Resource string
	// Caller is who calls. Identity policies do not look at it.
	Caller Caller
	// Context holds the condition keys, which are compared without regard to case.
	Context map[string][]string
}

// Caller is a principal as trust policies name it.
type Caller struct {
	// Kind is "AWS", "Federated" or "Service".
	Kind string
	// Names are the ARNs that name exactly this caller: of the role and of its
	// session, of the user, of the OIDC provider.
	Names []string
	// Account is the caller's account, which a policy may trust as a whole.
	Account string
}

// Effect is the decision of policies on a request.
type Effect int

// No statement matches, one allows and none denies, one denies.
const (
	Unmentioned Effect = iota
	Allowed
	Denied
)

// Decision is the effect of policies on a request.
type Decision struct {
	Effect Effect
	// Action is the element of the policy that allowed it, such as "iam:*".
	Action string
	// Named says that a trust policy allows it to exactly this caller, and not
	// only to the caller's account.
	Named bool
}

// Evaluate says what identity policies say to a request.
func Evaluate(r *Request, documents ...*Document) Decision {
	var d Decision
	for _, document := range documents {
		for i := range document.Statements {
			d = d.with(&document.Statements[i], r, false)
		}
	}
	return d
}

// EvaluateTrust says what the trust policy of a role says to a request.
func EvaluateTrust(r *Request, trust *Document) Decision {
	var d Decision
	for i := range trust.Statements {
		s := &trust.Statements[i]
		named, trusted := s.Principal.trusts(r.Caller)
		if trusted {
			d = d.with(s, r, named)
		}
	}
	return d
}

// with is the decision after one more statement: a denial stays, and a caller
// that is named once stays named.
func (d Decision) with(s *Statement, r *Request, named bool) Decision {
	action, ok := s.applies(r)
	switch {
	case !ok || d.Effect == Denied:
		return d
	case s.Effect == "Deny":
		return Decision{Effect: Denied}
	default:
		return Decision{Effect: Allowed, Action: action, Named: named || d.Named}
	}
}

// applies reports whether a statement matches a request, and the matching action.
func (s *Statement) applies(r *Request) (action string, ok bool) {
	if action, ok = s.action(r); !ok || !s.resource(r) {
		return "", false
	}
	return action, s.Conditions.met(r)
}

// action is the element that matches. IAM compares actions without regard to case.
func (s *Statement) action(r *Request) (string, bool) {
	i := slices.IndexFunc(s.Actions, func(pattern string) bool {
		return wildcard(strings.ToLower(pattern), strings.ToLower(r.Action))
	})
	if i < 0 {
		return "", false
	}
	return s.Actions[i], true
}

func (s *Statement) resource(r *Request) bool {
	return len(s.Resources) == 0 ||
		slices.ContainsFunc(s.Resources, func(pattern string) bool { return wildcard(pattern, r.Resource) })
}

// trusts reports whether a principal element includes a caller, and whether it
// names exactly this caller.
func (p *principal) trusts(c Caller) (named, trusted bool) {
	if p.anyone {
		return false, true
	}
	for _, name := range p.named[c.Kind] {
		switch {
		case slices.Contains(c.Names, name):
			return true, true
		case name == "*", c.Kind == "AWS" && (name == c.Account || strings.HasSuffix(name, ":iam::"+c.Account+":root")):
			trusted = true
		}
	}
	return false, trusted
}

// values returns the request's values of a condition key.
func (r *Request) values(key string) []string {
	for k, values := range r.Context {
		if strings.EqualFold(k, key) {
			return values
		}
	}
	return nil
}
