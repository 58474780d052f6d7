package aws

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var (
	roleName = regexp.MustCompile(`^[\w+=,.@-]+$`)
	rolePath = regexp.MustCompile(`^/([!-.0-~]+/)*$`)
)

// maxRoleName is the longest name of a role.
const maxRoleName = 64

func (c *Cloud) iamOperations() map[string]operation {
	all := map[string]operation{
		"CreateRole": c.createRole, "ListRoles": c.listRoles, "GetOpenIDConnectProvider": c.getOpenIDConnectProvider,
		"GetPolicy": c.onPolicy(getPolicy), "GetPolicyVersion": c.onPolicy(getPolicyVersion),
	}
	for name, do := range map[string]func(*request, *role) (any, error){
		"GetRole":                  c.getRole,
		"DeleteRole":               c.deleteRole,
		"UpdateAssumeRolePolicy":   c.updateAssumeRolePolicy,
		"TagRole":                  c.tagRole,
		"PutRolePolicy":            c.putRolePolicy,
		"GetRolePolicy":            c.getRolePolicy,
		"DeleteRolePolicy":         c.deleteRolePolicy,
		"ListRolePolicies":         c.listRolePolicies,
		"AttachRolePolicy":         c.attachRolePolicy,
		"DetachRolePolicy":         c.detachRolePolicy,
		"ListAttachedRolePolicies": c.listAttachedRolePolicies,
	} {
		all[name] = c.onRole(do)
	}
	return all
}

// onRole finds the role that a request is about, after it was authorized.
func (c *Cloud) onRole(do func(*request, *role) (any, error)) operation {
	return func(q *request) (any, error) {
		name := q.form.Get("RoleName")
		r := c.roleNamed(q.caller.account, name)
		resource, keys := q.caller.iamARN("role/"+name), map[string][]string{}
		if r != nil {
			resource = r.ARN
			keys = merged(tagContext("aws:ResourceTag", r.Tags), tagContext("iam:ResourceTag", r.Tags))
		}
		tags, err := q.tags()
		if err != nil {
			return nil, err
		}
		keys = merged(keys, tagContext("aws:RequestTag", tags))
		if attached := q.form.Get("PolicyArn"); attached != "" {
			keys["iam:PolicyARN"] = []string{attached}
		}
		if err := c.authorize(q, "iam:"+q.operation, resource, keys); err != nil {
			return nil, err
		}
		if err := checkRoleName(name); err != nil {
			return nil, err
		}
		if r == nil {
			return nil, missingEntity("The role with name %s cannot be found.", name)
		}
		return do(q, r)
	}
}

func checkRoleName(name string) error {
	switch {
	case len(name) > maxRoleName:
		return invalid("1 validation error detected: Value '%s' at 'roleName' failed to satisfy constraint: "+
			"Member must have length less than or equal to %d", name, maxRoleName)
	case !roleName.MatchString(name):
		return invalid("The specified value for roleName is invalid. It must contain only alphanumeric characters and/or the following: +=,.@_-")
	}
	return nil
}

// createRole also requires iam:TagRole if the role has tags.
func (c *Cloud) createRole(q *request) (any, error) {
	name, path := q.form.Get("RoleName"), q.form.Get("Path")
	if path == "" {
		path = "/"
	}
	tags, err := q.tags()
	if err != nil {
		return nil, err
	}
	roleARN := q.caller.iamARN("role" + path + name)
	keys := tagContext("aws:RequestTag", tags)
	if err := c.authorize(q, "iam:CreateRole", roleARN, keys); err != nil {
		return nil, err
	}
	if len(tags) > 0 {
		if err := c.authorize(q, "iam:TagRole", roleARN, keys); err != nil {
			return nil, err
		}
	}
	if err := c.checkNewRole(q, name, path); err != nil {
		return nil, err
	}
	t, err := c.newTrust(q.form.Get("AssumeRolePolicyDocument"))
	if err != nil {
		return nil, err
	}
	a, err := parseARN(roleARN)
	if err != nil {
		return nil, err
	}
	life, err := q.maxSession()
	if err != nil {
		return nil, err
	}
	r := c.newRole(a, t)
	r.Tags, r.MaxSession, r.Description = tags, life, q.form.Get("Description")
	return object{"Role": c.describe(r)}, nil
}

// checkNewRole refuses what IAM does not create.
func (c *Cloud) checkNewRole(q *request, name, path string) error {
	if err := checkRoleName(name); err != nil {
		return err
	}
	switch {
	case !rolePath.MatchString(path):
		return invalid("The specified value for path is invalid. It must begin and end with /")
	case q.form.Has("PermissionsBoundary"):
		return invalid("permissions boundaries are not implemented here")
	case c.roleNamed(q.caller.account, name) != nil:
		return fail(http.StatusConflict, "EntityAlreadyExists", "Role with name %s already exists.", name)
	case len(c.rolesOf(q.caller.account)) >= c.roleQuota:
		return fail(http.StatusConflict, "LimitExceeded", "Cannot exceed quota for RolesPerAccount: %d", c.roleQuota)
	}
	return nil
}

func (q *request) maxSession() (time.Duration, error) {
	text := q.form.Get("MaxSessionDuration")
	if text == "" {
		return time.Hour, nil
	}
	seconds, err := strconv.Atoi(text)
	if err != nil || seconds < 3600 || seconds > 43200 {
		return 0, invalid("MaxSessionDuration %q is not between 3600 and 43200", text)
	}
	return time.Duration(seconds) * time.Second, nil
}

// describe is a role in an answer.
func (c *Cloud) describe(r *role) object {
	shown := c.show(r)
	return object{
		"Path": r.arn.path(), "RoleName": r.arn.name(), "RoleId": r.ID, "Arn": r.ARN, "Description": r.Description,
		"CreateDate":               r.created.UTC().Format(time.RFC3339),
		"AssumeRolePolicyDocument": encoded(shown.Trust),
		"MaxSessionDuration":       int(r.MaxSession.Seconds()),
		"Tags":                     tagList(r.Tags),
	}
}

func (c *Cloud) getRole(_ *request, r *role) (any, error) {
	return object{"Role": c.describe(r)}, nil
}

// listRoles leaves out what it says of roles one by one: their tags.
func (c *Cloud) listRoles(q *request) (any, error) {
	prefix := q.form.Get("PathPrefix")
	if prefix == "" {
		prefix = "/"
	}
	if err := c.authorize(q, "iam:ListRoles", q.caller.iamARN("role"+prefix), nil); err != nil {
		return nil, err
	}
	var items list
	for _, r := range c.rolesOf(q.caller.account) {
		if strings.HasPrefix(r.arn.path(), prefix) {
			described := c.describe(r)
			delete(described, "Tags")
			items = append(items, described)
		}
	}
	return q.paged("Roles", items)
}

func (c *Cloud) deleteRole(_ *request, r *role) (any, error) {
	switch {
	case len(r.Attached) > 0:
		return nil, fail(http.StatusConflict, "DeleteConflict", "Cannot delete entity, must detach all policies first.")
	case len(r.Policies) > 0:
		return nil, fail(http.StatusConflict, "DeleteConflict", "Cannot delete entity, must delete policies first.")
	}
	delete(c.roles, r.ARN)
	return nil, nil
}

func (c *Cloud) updateAssumeRolePolicy(q *request, r *role) (any, error) {
	t, err := c.newTrust(q.form.Get("PolicyDocument"))
	if err == nil {
		r.trusts = append(r.trusts, t)
	}
	return nil, err
}
