package aws

import (
	"maps"
	"net/http"
	"regexp"
	"strconv"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/aws/policy"
)

// chainedLimit is the longest session of a role that is assumed with the
// credentials of another.
//
// Source: "Role chaining" in https://docs.aws.amazon.com/IAM/latest/UserGuide/id_roles.html
const chainedLimit = time.Hour

var sessionName = regexp.MustCompile(`^[\w+=,.@-]{2,64}$`)

func (c *Cloud) stsOperations() map[string]operation {
	return map[string]operation{
		"GetCallerIdentity":         c.getCallerIdentity,
		"AssumeRole":                c.assumeRole,
		"AssumeRoleWithWebIdentity": c.assumeRoleWithWebIdentity,
	}
}

// getCallerIdentity needs no permission.
func (c *Cloud) getCallerIdentity(q *request) (any, error) {
	return object{"Arn": q.caller.arn, "UserId": q.caller.id, "Account": q.caller.account.id}, nil
}

func (c *Cloud) assumeRole(q *request) (any, error) {
	s, err := q.session()
	if err != nil {
		return nil, err
	}
	roleARN := q.form.Get("RoleArn")
	denied := notAuthorized(q.caller.arn, "sts:AssumeRole", roleARN)
	if q.caller.root {
		return nil, fail(http.StatusForbidden, "AccessDenied", "Roles may not be assumed by root accounts.")
	}
	r := c.roles[roleARN]
	if r == nil || r.arn.partition != q.partition {
		return nil, denied
	}
	if q.caller.role != nil && s.life > chainedLimit {
		return nil, invalid("The requested DurationSeconds exceeds the 1 hour session limit for roles assumed by role chaining.")
	}
	// Transitive tags are passed on, and the request's may not change them.
	maps.Copy(s.tags, q.caller.transitive)
	actions := []string{"sts:AssumeRole"}
	if len(s.tags) > 0 {
		actions = append(actions, "sts:TagSession")
	}
	for _, action := range actions {
		if !c.mayAssume(q, r, action, s) {
			return nil, denied
		}
	}
	if s.life > r.MaxSession {
		return nil, tooLong()
	}
	return assumed(c.newSession(r, s)), nil
}

func tooLong() error {
	return invalid("The requested DurationSeconds exceeds the MaxSessionDuration set for this role.")
}

// mayAssume evaluates both sides: the role's trust policy, and the caller's
// identity policies, without which only a trust policy of the same account that
// names the caller suffices.
//
// Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_evaluation-logic.html
func (c *Cloud) mayAssume(q *request, r *role, action string, s session) bool {
	keys := merged(tagContext("aws:RequestTag", s.tags), map[string][]string{"sts:RoleSessionName": {s.name}})
	if id := q.form.Get("ExternalId"); id != "" {
		keys["sts:ExternalId"] = []string{id}
	}
	caller := policy.Caller{Kind: "AWS", Account: q.caller.account.id}
	trusted := c.trusts(q, r, &policy.Request{
		Action: action, Resource: r.ARN, Caller: caller, Context: merged(q.caller.context(), keys),
	})
	own := c.identityAllows(q, action, r.ARN, keys)
	if trusted.Effect != policy.Allowed || own.Effect == policy.Denied {
		return false
	}
	return own.Effect == policy.Allowed || (trusted.Named && q.caller.account == r.account())
}

// trusts evaluates the trust policy of a role that STS sees, and records it.
func (c *Cloud) trusts(q *request, r *role, to *policy.Request) policy.Decision {
	var decision policy.Decision
	if t := c.sightOf(r); t != nil {
		if q.caller != nil {
			to.Caller.Names = t.names(q.caller)
		}
		decision = policy.EvaluateTrust(to, t.document)
	}
	q.call.Grants = append(q.call.Grants, Grant{
		Action: to.Action, Resource: r.ARN, Element: decision.Action, Trust: true, Allowed: decision.Effect == policy.Allowed,
	})
	return decision
}

// session returns the requested session. It lives for the default of one hour.
func (q *request) session() (session, error) {
	s := session{name: q.form.Get("RoleSessionName"), life: time.Hour}
	if !sessionName.MatchString(s.name) {
		return s, invalid("1 validation error detected: Value '%s' at 'roleSessionName' failed to satisfy constraint", s.name)
	}
	if q.form.Has("Policy") || q.form.Has("PolicyArns.member.1.arn") {
		return s, invalid("session policies are not implemented here")
	}
	if text := q.form.Get("DurationSeconds"); text != "" {
		seconds, err := strconv.Atoi(text)
		if err != nil || seconds < 900 || seconds > 43200 {
			return s, invalid("1 validation error detected: Value '%s' at 'durationSeconds' failed to satisfy constraint: "+
				"Member must have value between 900 and 43200", text)
		}
		s.life = time.Duration(seconds) * time.Second
	}
	var err error
	if s.tags, err = q.tags(); err != nil {
		return s, err
	}
	s.transitive = map[string]string{}
	for _, key := range q.members("TransitiveTagKeys", "") {
		s.transitive[key] = s.tags[key]
	}
	return s, nil
}

// assumed is the answer with the credentials of a session.
func assumed(p *principal) object {
	return object{
		"Credentials": object{
			"AccessKeyId": p.AccessKeyID, "SecretAccessKey": p.SecretAccessKey, "SessionToken": p.SessionToken,
			"Expiration": p.Expires.UTC().Format(time.RFC3339),
		},
		"AssumedRoleUser": object{"Arn": p.arn, "AssumedRoleId": p.id},
	}
}
