package aws

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/aws/policy"
)

// Limits of IAM, which AWS raises on request.
//
// Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html
const (
	defaultRoleQuota = 1000
	maxTags          = 50
)

// Role is an IAM role, to put one into an account and as a copy of what it is.
type Role struct {
	// ARN names partition, account, path and name.
	ARN string
	// ID is the unique id, which a role of the same name that is created later
	// does not have. A role that is added gets one.
	ID string
	// Trust is the trust policy. Of a role that is read it is as IAM shows it: a
	// principal that no longer exists is there by its unique id.
	Trust string
	Tags  map[string]string
	// Policies are the inline policies by name, Attached the ARNs of others.
	Policies map[string]string
	Attached []string
	// MaxSession is the longest session; 0 is an hour.
	MaxSession time.Duration
	// Description is for users.
	Description string
}

// role is a role with what IAM knows of it.
type role struct {
	Role

	arn     arn
	created time.Time
	// trusts are the versions of the trust policy. A caller is bound by the last
	// version that it sees.
	trusts []trust
}

func (r *role) account() account { return account{r.arn.partition, r.arn.account} }

// AddRole puts a role into an account, visible to every client at once.
func (c *Cloud) AddRole(tb testing.TB, added Role) Role {
	tb.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	a, err := parseARN(added.ARN)
	if err != nil {
		tb.Fatal(err)
	}
	c.accounts[account{a.partition, a.account}] = true
	for name, text := range added.Policies {
		if _, err := policy.ParseIdentity(text); err != nil {
			tb.Fatalf("policy %s of %s: %v", name, added.ARN, err)
		}
	}
	t, err := c.newTrust(added.Trust)
	if err != nil {
		tb.Fatalf("trust policy of %s: %v", added.ARN, err)
	}
	t.sight = sight{}
	r := c.newRole(a, t)
	r.Description, r.Attached = added.Description, slices.Clone(added.Attached)
	maps.Copy(r.Tags, added.Tags)
	maps.Copy(r.Policies, added.Policies)
	if added.MaxSession != 0 {
		r.MaxSession = added.MaxSession
	}
	return c.show(r)
}

// AddManagedPolicy makes a policy that can be attached to roles under its ARN.
func (c *Cloud) AddManagedPolicy(tb testing.TB, policyARN, text string) {
	tb.Helper()
	if _, err := policy.ParseIdentity(text); err != nil {
		tb.Fatal(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.managed[policyARN] = text
}

// SetRoleQuota sets how many roles an account may have.
func (c *Cloud) SetRoleQuota(roles int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.roleQuota = roles
}

// RemoveRole removes a role and its policies, as the owner of the account may.
func (c *Cloud) RemoveRole(roleARN string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.roles, roleARN)
}

// Role returns the role with an ARN, and false if there is none.
func (c *Cloud) Role(roleARN string) (Role, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.roles[roleARN]
	if r == nil {
		return Role{}, false
	}
	return c.show(r), true
}

// Roles lists the roles of an account by name.
func (c *Cloud) Roles(partition, id string) []Role {
	c.mu.Lock()
	defer c.mu.Unlock()
	var shown []Role
	for _, r := range c.rolesOf(account{partition, id}) {
		shown = append(shown, c.show(r))
	}
	return shown
}

// rolesOf lists the roles of an account by name.
func (c *Cloud) rolesOf(a account) []*role {
	var found []*role
	for _, r := range c.roles {
		if r.account() == a {
			found = append(found, r)
		}
	}
	slices.SortFunc(found, func(a, b *role) int { return strings.Compare(a.arn.name(), b.arn.name()) })
	return found
}

// roleNamed finds a role of an account. Names differ by more than case.
func (c *Cloud) roleNamed(a account, name string) *role {
	for _, r := range c.rolesOf(a) {
		if strings.EqualFold(r.arn.name(), name) {
			return r
		}
	}
	return nil
}

func (c *Cloud) newRole(a arn, t trust) *role {
	r := &role{
		Role: Role{ARN: a.String(), ID: unique("AROA", 17), Tags: map[string]string{}, Policies: map[string]string{}, MaxSession: time.Hour},
		arn:  a, created: c.now(), trusts: []trust{t},
	}
	c.roles[r.ARN] = r
	return r
}

// show is a role as IAM shows it.
func (c *Cloud) show(r *role) Role {
	shown := r.Role
	shown.Tags, shown.Policies, shown.Attached = maps.Clone(r.Tags), maps.Clone(r.Policies), slices.Clone(r.Attached)
	last := r.trusts[len(r.trusts)-1]
	shown.Trust = last.text
	for name, id := range last.pinned {
		if now := c.roles[name]; now == nil || now.ID != id {
			shown.Trust = strings.ReplaceAll(shown.Trust, `"`+name+`"`, `"`+id+`"`)
		}
	}
	return shown
}

// policiesOf are the policies of a role, inline and attached. All were checked
// when they were saved.
func (c *Cloud) policiesOf(r *role) []*policy.Document {
	texts := slices.Collect(maps.Values(r.Policies))
	for _, attached := range r.Attached {
		texts = append(texts, c.managed[attached])
	}
	var documents []*policy.Document
	for _, text := range texts {
		if document, err := policy.ParseIdentity(text); err == nil {
			documents = append(documents, document)
		}
	}
	return documents
}

// checkTags refuses what IAM and EKS do not take as tags.
func checkTags(tags map[string]string) error {
	if len(tags) > maxTags {
		return fail(http.StatusConflict, "LimitExceeded", "Cannot exceed quota for TagsPerRole: %d", maxTags)
	}
	for key, value := range tags {
		if key == "" || len(key) > 128 || len(value) > 256 || strings.HasPrefix(strings.ToLower(key), "aws:") {
			return invalid("the tag %q=%q is invalid", key, value)
		}
	}
	return nil
}

// tagContext returns the condition keys of tags: of a request's or of a resource's.
func tagContext(prefix string, tags map[string]string) map[string][]string {
	keys := map[string][]string{}
	for key, value := range tags {
		keys[fmt.Sprintf("%s/%s", prefix, key)] = []string{value}
	}
	if prefix == "aws:RequestTag" && len(tags) > 0 {
		keys["aws:TagKeys"] = slices.Sorted(maps.Keys(tags))
	}
	return keys
}
