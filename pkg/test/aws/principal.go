package aws

import (
	"maps"
	"net/http"
	"testing"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/aws/policy"
)

// Credentials sign requests.
type Credentials struct {
	AccessKeyID, SecretAccessKey, SessionToken string
	// Expires is zero for the keys of users.
	Expires time.Time
}

// Environment returns the variables that the SDK and the AWS CLI read them from.
func (c Credentials) Environment() []string {
	env := []string{"AWS_ACCESS_KEY_ID=" + c.AccessKeyID, "AWS_SECRET_ACCESS_KEY=" + c.SecretAccessKey}
	if c.SessionToken != "" {
		env = append(env, "AWS_SESSION_TOKEN="+c.SessionToken)
	}
	return env
}

// principal is who signs with a key: the root of an account, a user or a session
// of a role.
type principal struct {
	account
	Credentials

	arn, id string
	// role is nil for root and users.
	role *role
	// policies are the policies of a user; nil for root, who may do everything, and for
	// sessions, whose role has them.
	policies []*policy.Document
	root     bool
	tags     map[string]string
	// transitive tags are passed to the next session when roles are chained.
	transitive map[string]string
}

// AddAdmin returns a key of the root of the account with an id in a partition.
func (c *Cloud) AddAdmin(tb testing.TB, partition, id string) Credentials {
	tb.Helper()
	p := &principal{account: account{partition, id}, id: id, root: true}
	p.arn = p.iamARN("root")
	return c.addKey(p)
}

// AddUser returns a key of an IAM user who may do what the policies allow.
func (c *Cloud) AddUser(tb testing.TB, user string, policies ...string) Credentials {
	tb.Helper()
	a, err := parseARN(user)
	if err != nil {
		tb.Fatal(err)
	}
	p := &principal{account: account{a.partition, a.account}, arn: user, id: unique("AIDA", 17)}
	for _, text := range policies {
		document, err := policy.ParseIdentity(text)
		if err != nil {
			tb.Fatal(err)
		}
		p.policies = append(p.policies, document)
	}
	return c.addKey(p)
}

func (c *Cloud) addKey(p *principal) Credentials {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.accounts[p.account] = true
	p.Credentials = Credentials{AccessKeyID: unique("AKIA", 16), SecretAccessKey: unique("", 40)}
	c.keys[p.AccessKeyID] = p
	return p.Credentials
}

// Session returns credentials of a role as EKS Pod Identity hands them out: its
// tags are session tags, and transitive.
//
// Source: https://docs.aws.amazon.com/eks/latest/userguide/pod-id-abac.html
func (c *Cloud) Session(tb testing.TB, roleARN, name string, tags map[string]string) Credentials {
	tb.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.roles[roleARN]
	if r == nil {
		tb.Fatalf("there is no role %s", roleARN)
	}
	return c.newSession(r, session{name: name, life: time.Hour, tags: tags, transitive: tags}).Credentials
}

// session contains the parameters of assuming a role.
type session struct {
	name             string
	life             time.Duration
	tags, transitive map[string]string
}

// newSession issues credentials of a role. Session tags win over the role's.
func (c *Cloud) newSession(r *role, s session) *principal {
	tags := maps.Clone(r.Tags)
	if tags == nil {
		tags = map[string]string{}
	}
	maps.Copy(tags, s.tags)
	p := &principal{
		account: r.account(), role: r, tags: tags, transitive: s.transitive, id: r.ID + ":" + s.name,
		arn: arn{r.arn.partition, "sts", "", r.arn.account, "assumed-role/" + r.arn.name() + "/" + s.name}.String(),
		Credentials: Credentials{
			AccessKeyID: unique("ASIA", 16), SecretAccessKey: unique("", 40),
			// As long as real ones are, so that limits of lengths are met.
			SessionToken: "IQoJb3JpZ2luX2Vj" + tokenPadding(), Expires: c.now().Add(s.life),
		},
	}
	c.keys[p.AccessKeyID] = p
	return p
}

// tokenPadding extends session tokens to about the length of real ones, so that tokens
// made of them meet the same limits.
func tokenPadding() string {
	var padding string
	for len(padding) < 700 {
		padding += unique("", 70)
	}
	return padding
}

// documents are the policies that decide what the principal may do.
func (c *Cloud) documents(p *principal) []*policy.Document {
	if p.role == nil {
		return p.policies
	}
	return c.policiesOf(p.role)
}

// names returns the ARNs that name exactly this principal in a trust policy.
func (p *principal) names() []string {
	if p.role != nil {
		return []string{p.role.ARN, p.arn}
	}
	return []string{p.arn}
}

// context are the condition keys that every request of the principal has.
func (p *principal) context() map[string][]string {
	keys := map[string][]string{
		"aws:PrincipalAccount": {p.account.id}, "aws:PrincipalArn": {p.names()[0]}, "aws:userid": {p.id},
		"aws:SecureTransport": {"true"},
	}
	for key, value := range p.tags {
		keys["aws:PrincipalTag/"+key] = []string{value}
	}
	return keys
}

// authorize evaluates the caller's identity policies and records what they say.
func (c *Cloud) authorize(r *request, action, resource string, extra map[string][]string) error {
	if c.identityAllows(r, action, resource, extra).Effect == policy.Allowed {
		return nil
	}
	return notAuthorized(r.caller.arn, action, resource)
}

// identityAllows returns the decision of the caller's identity policies. Root may do
// all.
func (c *Cloud) identityAllows(r *request, action, resource string, extra map[string][]string) policy.Decision {
	keys := r.caller.context()
	maps.Copy(keys, extra)
	decision := policy.Decision{Effect: policy.Allowed, Action: "*"}
	if !r.caller.root {
		decision = policy.Evaluate(&policy.Request{Action: action, Resource: resource, Context: keys}, c.documents(r.caller)...)
	}
	r.call.Grants = append(r.call.Grants, Grant{
		Action: action, Resource: resource, Element: decision.Action, Allowed: decision.Effect == policy.Allowed,
	})
	return decision
}

func notAuthorized(who, action, resource string) error {
	return fail(http.StatusForbidden, "AccessDenied", "User: %s is not authorized to perform: %s on resource: %s", who, action, resource)
}
