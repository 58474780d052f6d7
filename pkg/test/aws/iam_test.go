package aws_test

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/aws"
)

// anyone is a trust policy for tests that do not look at trust.
var anyone = trusting(`"*"`, `"sts:AssumeRole"`, `{}`)

func TestRoles(t *testing.T) {
	t.Parallel()
	cloud := aws.Start(t)
	ctx, c := t.Context(), newClients(t, cloud, region, cloud.AddAdmin(t, "aws", hubAccount)).iam
	name := new("ocm-hub-1")
	create := func(name, trust string) error {
		tags := []iamtypes.Tag{{Key: new("hub"), Value: new("hub-0")}}
		_, err := c.CreateRole(ctx, &iam.CreateRoleInput{RoleName: &name, AssumeRolePolicyDocument: &trust, Tags: tags})
		return err
	}
	expect(t, "65 characters", create(strings.Repeat("a", 65), anyone), "ValidationError")
	expect(t, "a slash in a name", create("a/b", anyone), "ValidationError")
	expect(t, "an unknown principal", create(*name, byRole(managedRole)), "MalformedPolicyDocument")
	expect(t, "an unknown account", create(*name, byRole("arn:aws:iam::999999999999:root")), "MalformedPolicyDocument")
	expect(t, "no JSON", create(*name, "{"), "MalformedPolicyDocument")
	expect(t, "2049 characters", create(*name, anyone+strings.Repeat(" ", 2049-len(anyone))), "LimitExceeded")
	expect(t, "a new role", create(*name, anyone), "")
	expect(t, "a name again", create(*name, anyone), "EntityAlreadyExists")
	expect(t, "a name in other letters", create("OCM-Hub-1", anyone), "EntityAlreadyExists")

	got, err := c.GetRole(ctx, &iam.GetRoleInput{RoleName: name})
	if err != nil {
		t.Fatal(err)
	}
	trust, err := url.QueryUnescape(*got.Role.AssumeRolePolicyDocument)
	if err != nil || trust != anyone || *got.Role.Arn != hubRole || *got.Role.MaxSessionDuration != 3600 || len(got.Role.Tags) != 1 {
		t.Errorf("got %+v, trust %s, %v", got.Role, trust, err)
	}
	_, err = c.GetRole(ctx, &iam.GetRoleInput{RoleName: new("none")})
	expect(t, "a role that is not there", err, "NoSuchEntity")
	_, err = c.DeleteRole(ctx, &iam.DeleteRoleInput{RoleName: name})
	expect(t, "delete", err, "")
	_, err = c.DeleteRole(ctx, &iam.DeleteRoleInput{RoleName: name})
	expect(t, "delete again", err, "NoSuchEntity")
	cloud.SetRoleQuota(1)
	expect(t, "the first role", create("one", anyone), "")
	expect(t, "one more than the quota", create("two", anyone), "LimitExceeded")
}

func TestRolePolicies(t *testing.T) {
	t.Parallel()
	cloud := aws.Start(t)
	ctx, c := t.Context(), newClients(t, cloud, region, cloud.AddAdmin(t, "aws", hubAccount)).iam
	cloud.AddRole(t, aws.Role{ARN: hubRole, Trust: anyone})
	managed := "arn:aws:iam::aws:policy/ReadOnly"
	cloud.AddManagedPolicy(t, managed, allow("eks:DescribeCluster", "*"))
	name, text := new("ocm-hub-1"), allow("eks:*", "*")
	_, err := c.PutRolePolicy(ctx, &iam.PutRolePolicyInput{RoleName: name, PolicyName: new("p"), PolicyDocument: new(anyone)})
	expect(t, "a trust policy as an identity policy", err, "MalformedPolicyDocument")
	_, err = c.PutRolePolicy(ctx, &iam.PutRolePolicyInput{RoleName: name, PolicyName: new("p"), PolicyDocument: &text})
	expect(t, "put", err, "")
	got, err := c.GetRolePolicy(ctx, &iam.GetRolePolicyInput{RoleName: name, PolicyName: new("p")})
	expect(t, "get", err, "")
	if document, err := url.QueryUnescape(*got.PolicyDocument); err != nil || document != text {
		t.Errorf("got %s, %v", document, err)
	}
	_, err = c.AttachRolePolicy(ctx, &iam.AttachRolePolicyInput{RoleName: name, PolicyArn: new(managed + "2")})
	expect(t, "attach what is not there", err, "NoSuchEntity")
	_, err = c.AttachRolePolicy(ctx, &iam.AttachRolePolicyInput{RoleName: name, PolicyArn: &managed})
	expect(t, "attach", err, "")
	attached, err := c.ListAttachedRolePolicies(ctx, &iam.ListAttachedRolePoliciesInput{RoleName: name})
	if err != nil || len(attached.AttachedPolicies) != 1 || *attached.AttachedPolicies[0].PolicyArn != managed {
		t.Errorf("attached: %+v, %v", attached, err)
	}
	described, err := c.GetPolicy(ctx, &iam.GetPolicyInput{PolicyArn: &managed})
	expect(t, "get the attached policy", err, "")
	version, err := c.GetPolicyVersion(ctx, &iam.GetPolicyVersionInput{PolicyArn: &managed, VersionId: described.Policy.DefaultVersionId})
	expect(t, "get its version", err, "")
	if document, err := url.QueryUnescape(*version.PolicyVersion.Document); err != nil || document != allow("eks:DescribeCluster", "*") {
		t.Errorf("got %s, %v", document, err)
	}
	_, err = c.GetPolicyVersion(ctx, &iam.GetPolicyVersionInput{PolicyArn: &managed, VersionId: new("v2")})
	expect(t, "get another version", err, "NoSuchEntity")
	others := "arn:aws:iam::999999999999:policy/theirs"
	cloud.AddManagedPolicy(t, others, text)
	_, err = c.GetPolicy(ctx, &iam.GetPolicyInput{PolicyArn: &others})
	expect(t, "get a policy of another account", err, "NoSuchEntity")
	_, err = c.DeleteRole(ctx, &iam.DeleteRoleInput{RoleName: name})
	expect(t, "delete with a policy attached", err, "DeleteConflict")
	_, err = c.DetachRolePolicy(ctx, &iam.DetachRolePolicyInput{RoleName: name, PolicyArn: &managed})
	expect(t, "detach", err, "")
	_, err = c.DeleteRole(ctx, &iam.DeleteRoleInput{RoleName: name})
	expect(t, "delete with an inline policy", err, "DeleteConflict")
	inline, err := c.ListRolePolicies(ctx, &iam.ListRolePoliciesInput{RoleName: name})
	if err != nil || !slices.Equal(inline.PolicyNames, []string{"p"}) {
		t.Errorf("inline: %+v, %v", inline, err)
	}
	_, err = c.DeleteRolePolicy(ctx, &iam.DeleteRolePolicyInput{RoleName: name, PolicyName: new("p")})
	expect(t, "delete the policy", err, "")
	_, err = c.DeleteRolePolicy(ctx, &iam.DeleteRolePolicyInput{RoleName: name, PolicyName: new("p")})
	expect(t, "delete the policy again", err, "NoSuchEntity")
	_, err = c.DeleteRole(ctx, &iam.DeleteRoleInput{RoleName: name})
	expect(t, "delete", err, "")
}

func TestRoleTags(t *testing.T) {
	t.Parallel()
	cloud := aws.Start(t)
	ctx, c := t.Context(), newClients(t, cloud, region, cloud.AddAdmin(t, "aws", hubAccount)).iam
	cloud.AddRole(t, aws.Role{ARN: hubRole, Trust: anyone, Tags: map[string]string{"Hub": "hub-0", "b": "1"}})
	name := new("ocm-hub-1")
	_, err := c.TagRole(ctx, &iam.TagRoleInput{RoleName: name, Tags: []iamtypes.Tag{{Key: new("hub"), Value: new("hub-1")}}})
	expect(t, "tag", err, "")
	_, err = c.TagRole(ctx, &iam.TagRoleInput{RoleName: name, Tags: []iamtypes.Tag{{Key: new("aws:x"), Value: new("")}}})
	expect(t, "a reserved tag", err, "ValidationError")
	if role, _ := cloud.Role(hubRole); !maps.Equal(role.Tags, map[string]string{"hub": "hub-1", "b": "1"}) {
		t.Errorf("tags: %v", role.Tags)
	}
}

func TestListRolesIsPaged(t *testing.T) {
	t.Parallel()
	cloud := aws.Start(t)
	c := newClients(t, cloud, region, cloud.AddAdmin(t, "aws", hubAccount)).iam
	var want []string
	for i := range 5 {
		name := fmt.Sprintf("ocm-hub-%d", i)
		want = append(want, name)
		cloud.AddRole(t, aws.Role{ARN: "arn:aws:iam::" + hubAccount + ":role/ocm/" + name, Trust: anyone})
	}
	cloud.AddRole(t, aws.Role{ARN: "arn:aws:iam::" + hubAccount + ":role/elsewhere", Trust: anyone})
	cloud.AddRole(t, aws.Role{ARN: managedRole, Trust: anyone})
	var got []string
	pages := iam.NewListRolesPaginator(c, &iam.ListRolesInput{PathPrefix: new("/ocm/"), MaxItems: new(int32(2))})
	n := 0
	for ; pages.HasMorePages(); n++ {
		out, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, role := range out.Roles {
			got = append(got, *role.RoleName)
		}
	}
	if n != 3 || !slices.Equal(got, want) {
		t.Errorf("got %v on %d pages", got, n)
	}
}

// TestLeastPrivilege shows how a test learns which elements of a policy a program
// needs.
func TestLeastPrivilege(t *testing.T) {
	t.Parallel()
	cloud := aws.Start(t)
	key := cloud.AddUser(t, "arn:aws:iam::111122223333:user/alice",
		allow("iam:CreateRole", "arn:aws:iam::111122223333:role/ocm-hub-*"), allow("iam:Tag*", "arn:aws:iam::*:role/ocm-hub-1"))
	c := newClients(t, cloud, region, key).iam
	create := func(name string, tags ...iamtypes.Tag) error {
		_, err := c.CreateRole(t.Context(), &iam.CreateRoleInput{RoleName: &name, AssumeRolePolicyDocument: &anyone, Tags: tags})
		return err
	}
	tag := iamtypes.Tag{Key: new("a"), Value: new("b")}
	expect(t, "of another name", create("other"), "AccessDenied")
	expect(t, "tags without a right to", create("ocm-hub-2", tag), "AccessDenied")
	expect(t, "as allowed", create("ocm-hub-1", tag), "")
	calls := cloud.Calls()
	last := calls[len(calls)-1]
	if len(calls) != 3 || last.Operation != "CreateRole" || last.Caller != "arn:aws:iam::111122223333:user/alice" || last.Code != "" {
		t.Fatalf("calls: %+v", calls)
	}
	want := []aws.Grant{
		{Action: "iam:CreateRole", Resource: hubRole, Element: "iam:CreateRole", Allowed: true},
		{Action: "iam:TagRole", Resource: hubRole, Element: "iam:Tag*", Allowed: true},
	}
	if !slices.Equal(last.Grants, want) {
		t.Errorf("grants: %+v", last.Grants)
	}
}
