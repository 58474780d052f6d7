package cloud

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/awsarn"
)

// Tags are the tags of something in AWS.
type Tags map[string]string

// Lacking returns those of wanted that t does not have.
func (t Tags) Lacking(wanted Tags) Tags {
	lacking := maps.Clone(wanted)
	maps.DeleteFunc(lacking, func(key, value string) bool {
		had, ok := t[key]
		return ok && had == value
	})
	return lacking
}

// Role is an IAM role.
type Role struct {
	// ID is its unique ID, which no other role ever has, not even a later one of
	// the same name.
	ID string
	// Trust is its trust policy.
	Trust string
	Tags  Tags
}

// Role returns a role, nil if there is none.
func (c *Client) Role(ctx context.Context, role awsarn.Role) (*Role, error) {
	out, err := c.iam.GetRole(ctx, &iam.GetRoleInput{RoleName: &role.Name})
	if has(err, codeNoEntity) {
		return nil, nil
	}
	if err != nil {
		return nil, explain("iam:GetRole", role.String(), err)
	}
	return readRole(role, out.Role)
}

// readRole reads a role of an answer. IAM encodes policies as it does URLs
// (RFC 3986).
func readRole(role awsarn.Role, got *iamtypes.Role) (*Role, error) {
	trust, err := url.PathUnescape(aws.ToString(got.AssumeRolePolicyDocument))
	if err != nil {
		return nil, fmt.Errorf("the trust policy of %s cannot be decoded: %w", role, err)
	}
	tags := Tags{}
	for _, tag := range got.Tags {
		tags[aws.ToString(tag.Key)] = aws.ToString(tag.Value)
	}
	return &Role{ID: aws.ToString(got.RoleId), Trust: trust, Tags: tags}, nil
}

// CreateRole creates a role with its tags. See NoPrincipal for an error that time
// heals.
func (c *Client) CreateRole(ctx context.Context, role awsarn.Role, description, trust string, tags Tags) (*Role, error) {
	out, err := c.iam.CreateRole(ctx, &iam.CreateRoleInput{
		RoleName: &role.Name, Path: &role.Path, Description: &description, AssumeRolePolicyDocument: &trust, Tags: iamTags(tags),
	})
	if err != nil {
		return nil, explain("iam:CreateRole", role.String(), err)
	}
	return readRole(role, out.Role)
}

// SetTrust replaces the trust policy of a role. See NoPrincipal for an error that
// time heals.
func (c *Client) SetTrust(ctx context.Context, role awsarn.Role, trust string) error {
	_, err := c.iam.UpdateAssumeRolePolicy(ctx, &iam.UpdateAssumeRolePolicyInput{RoleName: &role.Name, PolicyDocument: &trust})
	return explain("iam:UpdateAssumeRolePolicy", role.String(), err)
}

// TagRole adds tags to a role, or changes their values.
func (c *Client) TagRole(ctx context.Context, role awsarn.Role, tags Tags) error {
	_, err := c.iam.TagRole(ctx, &iam.TagRoleInput{RoleName: &role.Name, Tags: iamTags(tags)})
	return explain("iam:TagRole", role.String(), err)
}

// iamTags are tags in the form of IAM, sorted by key.
func iamTags(tags Tags) []iamtypes.Tag {
	var list []iamtypes.Tag
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		list = append(list, iamtypes.Tag{Key: aws.String(key), Value: aws.String(tags[key])})
	}
	return list
}

// DeleteRole deletes a role, after the policies in it and those attached to it:
// IAM deletes no role that has any. That there is no such role is no error.
func (c *Client) DeleteRole(ctx context.Context, role awsarn.Role) error {
	for _, step := range []func(context.Context, awsarn.Role) error{c.deletePolicies, c.detachPolicies} {
		if err := step(ctx, role); err != nil {
			return err
		}
	}
	_, err := c.iam.DeleteRole(ctx, &iam.DeleteRoleInput{RoleName: &role.Name})
	return explain("iam:DeleteRole", role.String(), ignore(err, codeNoEntity))
}

func (c *Client) deletePolicies(ctx context.Context, role awsarn.Role) error {
	policies, err := c.inlinePolicies(ctx, role)
	for _, name := range policies {
		_, err := c.iam.DeleteRolePolicy(ctx, &iam.DeleteRolePolicyInput{RoleName: &role.Name, PolicyName: &name})
		if err := ignore(err, codeNoEntity); err != nil {
			return explain("iam:DeleteRolePolicy", role.String(), err)
		}
	}
	return err
}

// inlinePolicies returns the names of the policies in a role, none if there is no
// such role.
func (c *Client) inlinePolicies(ctx context.Context, role awsarn.Role) ([]string, error) {
	var policies []string
	err := pages(func(marker *string) (*string, error) {
		page, err := c.iam.ListRolePolicies(ctx, &iam.ListRolePoliciesInput{RoleName: &role.Name, Marker: marker})
		if err != nil {
			return nil, explain("iam:ListRolePolicies", role.String(), ignore(err, codeNoEntity))
		}
		policies = append(policies, page.PolicyNames...)
		return page.Marker, nil
	})
	return policies, err
}

func (c *Client) detachPolicies(ctx context.Context, role awsarn.Role) error {
	policies, err := c.attachedPolicies(ctx, role)
	for _, policy := range policies {
		_, err := c.iam.DetachRolePolicy(ctx, &iam.DetachRolePolicyInput{RoleName: &role.Name, PolicyArn: policy.PolicyArn})
		if err := ignore(err, codeNoEntity); err != nil {
			return explain("iam:DetachRolePolicy", role.String(), err)
		}
	}
	return err
}

// attachedPolicies returns the policies that are attached to a role, none if there
// is no such role.
func (c *Client) attachedPolicies(ctx context.Context, role awsarn.Role) ([]iamtypes.AttachedPolicy, error) {
	var policies []iamtypes.AttachedPolicy
	err := pages(func(marker *string) (*string, error) {
		page, err := c.iam.ListAttachedRolePolicies(ctx, &iam.ListAttachedRolePoliciesInput{RoleName: &role.Name, Marker: marker})
		if err != nil {
			return nil, explain("iam:ListAttachedRolePolicies", role.String(), ignore(err, codeNoEntity))
		}
		policies = append(policies, page.AttachedPolicies...)
		return page.Marker, nil
	})
	return policies, err
}
