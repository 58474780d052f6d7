package aws

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/aws/policy"
)

func (c *Cloud) putRolePolicy(q *request, r *role) (any, error) {
	text := q.form.Get("PolicyDocument")
	if _, err := policy.ParseIdentity(text); err != nil {
		return nil, fail(http.StatusBadRequest, "MalformedPolicyDocument", "%v", err)
	}
	r.Policies[q.form.Get("PolicyName")] = text
	return nil, nil
}

func (c *Cloud) getRolePolicy(q *request, r *role) (any, error) {
	name := q.form.Get("PolicyName")
	text, ok := r.Policies[name]
	if !ok {
		return nil, missingEntity("The role policy with name %s cannot be found.", name)
	}
	return object{
		"RoleName": r.arn.name(), "PolicyName": name,
		"PolicyDocument": encoded(text),
	}, nil
}

func (c *Cloud) deleteRolePolicy(q *request, r *role) (any, error) {
	name := q.form.Get("PolicyName")
	if _, ok := r.Policies[name]; !ok {
		return nil, missingEntity("The role policy with name %s cannot be found.", name)
	}
	delete(r.Policies, name)
	return nil, nil
}

func (c *Cloud) listRolePolicies(q *request, r *role) (any, error) {
	items := list{}
	for _, name := range slices.Sorted(maps.Keys(r.Policies)) {
		items = append(items, name)
	}
	return q.paged("PolicyNames", items)
}

func (c *Cloud) attachRolePolicy(q *request, r *role) (any, error) {
	name := q.form.Get("PolicyArn")
	if _, ok := c.managed[name]; !ok {
		return nil, missingEntity("Policy %s does not exist or is not attachable.", name)
	}
	if !slices.Contains(r.Attached, name) {
		r.Attached = append(r.Attached, name)
	}
	return nil, nil
}

func (c *Cloud) detachRolePolicy(q *request, r *role) (any, error) {
	name := q.form.Get("PolicyArn")
	i := slices.Index(r.Attached, name)
	if i < 0 {
		return nil, missingEntity("Policy %s was not found.", name)
	}
	r.Attached = slices.Delete(r.Attached, i, i+1)
	return nil, nil
}

func (c *Cloud) listAttachedRolePolicies(q *request, r *role) (any, error) {
	items := list{}
	for _, name := range r.Attached {
		items = append(items, object{"PolicyName": name[strings.LastIndex(name, "/")+1:], "PolicyArn": name})
	}
	return q.paged("AttachedPolicies", items)
}

// onlyVersion is the version of every managed policy.
const onlyVersion = "v1"

// onPolicy finds the managed policy that a request is about: one of the caller's
// account, or of AWS.
func (c *Cloud) onPolicy(do func(q *request, name, text string) (any, error)) operation {
	return func(q *request) (any, error) {
		name := q.form.Get("PolicyArn")
		if err := c.authorize(q, "iam:"+q.operation, name, nil); err != nil {
			return nil, err
		}
		text, ok := c.managed[name]
		if of, err := parseARN(name); !ok || err != nil || of.partition != q.caller.partition || (of.account != q.caller.account.id && of.account != "aws") {
			return nil, missingEntity("Policy %s was not found.", name)
		}
		return do(q, name, text)
	}
}

func getPolicy(_ *request, name, _ string) (any, error) {
	return object{"Policy": object{"PolicyName": name[strings.LastIndex(name, "/")+1:], "Arn": name, "DefaultVersionId": onlyVersion}}, nil
}

func getPolicyVersion(q *request, name, text string) (any, error) {
	if version := q.form.Get("VersionId"); version != onlyVersion {
		return nil, missingEntity("Policy %s version %s does not exist or is not attachable.", name, version)
	}
	return object{"PolicyVersion": object{"VersionId": onlyVersion, "Document": encoded(text)}}, nil
}

// encoded is a policy as answers have it, URL-encoded (RFC 3986).
func encoded(text string) string { return strings.ReplaceAll(url.QueryEscape(text), "+", "%20") }
