package policy

import (
	"slices"
	"strings"
)

// Request is a request with everything that policies can evaluate.
type Request struct {
	// Action is what is called, such as "iam:CreateRole".
	Action string
	// Resource is the ARN of what it is called on, or "*".
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

// Effect is what policies say to a request.
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

// applies reports whether a statement is about a request, and by which action.
func (s *Statement) applies(r *Request) (action string, ok bool) {
	if action, ok = s.action(r); !ok || !s.resource(r) {
		return "", false
	}
	return action, s.Conditions.met(r)
}

// action is the element that matches. IAM compares actions without regard to case.
func (s *Statement) action(r *Request) (string, bool) {
	matches := func(pattern string) bool {
		return wildcard(strings.ToLower(pattern), strings.ToLower(r.Action))
	}
	if len(s.NotActions) > 0 {
		return r.Action, !slices.ContainsFunc(s.NotActions, matches)
	}
	if i := slices.IndexFunc(s.Actions, matches); i >= 0 {
		return s.Actions[i], true
	}
	return "", false
}

func (s *Statement) resource(r *Request) bool {
	matches := func(pattern string) bool {
		pattern, ok := r.expand(pattern)
		return ok && wildcard(pattern, r.Resource)
	}
	if len(s.NotResources) > 0 {
		return !slices.ContainsFunc(s.NotResources, matches)
	}
	return len(s.Resources) == 0 || slices.ContainsFunc(s.Resources, matches)
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

// value is what the request has under a condition key.
func (r *Request) value(key string) ([]string, bool) {
	for k, values := range r.Context {
		if strings.EqualFold(k, key) && len(values) > 0 {
			return values, true
		}
	}
	return nil, false
}

// expand replaces policy variables, such as ${aws:PrincipalTag/team}. A variable
// that the request has no value for matches nothing.
func (r *Request) expand(text string) (string, bool) {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(text, "${")
		b.WriteString(before)
		if !found {
			return b.String(), true
		}
		key, rest, _ := strings.Cut(after, "}")
		values, ok := r.value(key)
		if !ok {
			return "", false
		}
		b.WriteString(values[0])
		text = rest
	}
}
