package cloud

import (
	"context"
	"fmt"
	"net/url"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/awsarn"
)

// Policies are the policies of a role.
type Policies struct {
	// Inline are the documents in the role by their names.
	Inline map[string]string
	// Attached are the ARNs of the others.
	Attached []string
}

// Policies returns the policies of a role that exists.
func (c *Client) Policies(ctx context.Context, role awsarn.Role) (Policies, error) {
	found := Policies{Inline: map[string]string{}}
	inline, err := c.inlinePolicies(ctx, role)
	if err != nil {
		return found, err
	}
	for _, name := range inline {
		out, err := c.iam.GetRolePolicy(ctx, &iam.GetRolePolicyInput{RoleName: &role.Name, PolicyName: &name})
		if err != nil {
			return found, explain("iam:GetRolePolicy", role.String(), err)
		}
		if found.Inline[name], err = url.PathUnescape(aws.ToString(out.PolicyDocument)); err != nil {
			return found, fmt.Errorf("the policy %s of %s cannot be decoded: %w", name, role, err)
		}
	}
	attached, err := c.attachedPolicies(ctx, role)
	for _, policy := range attached {
		found.Attached = append(found.Attached, aws.ToString(policy.PolicyArn))
	}
	return found, err
}

// AttachedPolicy returns the document of a policy that is attached to a role, in the
// version that is in force.
func (c *Client) AttachedPolicy(ctx context.Context, policyARN string) (string, error) {
	policy, err := c.iam.GetPolicy(ctx, &iam.GetPolicyInput{PolicyArn: &policyARN})
	if err != nil {
		return "", explain("iam:GetPolicy", policyARN, err)
	}
	out, err := c.iam.GetPolicyVersion(ctx, &iam.GetPolicyVersionInput{PolicyArn: &policyARN, VersionId: policy.Policy.DefaultVersionId})
	if err != nil {
		return "", explain("iam:GetPolicyVersion", policyARN, err)
	}
	document, err := url.PathUnescape(aws.ToString(out.PolicyVersion.Document))
	if err != nil {
		return "", fmt.Errorf("the policy %s cannot be decoded: %w", policyARN, err)
	}
	return document, nil
}

// ProviderAudiences returns the audiences of an OIDC provider, and false if there is
// no such provider.
func (c *Client) ProviderAudiences(ctx context.Context, provider awsarn.Provider) (audiences []string, found bool, err error) {
	out, err := c.iam.GetOpenIDConnectProvider(ctx, &iam.GetOpenIDConnectProviderInput{OpenIDConnectProviderArn: aws.String(provider.String())})
	if has(err, codeNoEntity) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, explain("iam:GetOpenIDConnectProvider", provider.String(), err)
	}
	return out.ClientIDList, true, nil
}

// Roles returns the roles of the account for which wanted returns true, in IAM's
// order.
func (c *Client) Roles(ctx context.Context, wanted func(name string) bool) ([]awsarn.Role, error) {
	var found []awsarn.Role
	err := pages(func(marker *string) (*string, error) {
		page, err := c.iam.ListRoles(ctx, &iam.ListRolesInput{Marker: marker})
		if err != nil {
			all := awsarn.Role{Partition: c.hub.Partition, Account: c.hub.Account, Path: "/", Name: "*"}
			return nil, explain("iam:ListRoles", all.String(), err)
		}
		for _, listed := range page.Roles {
			role, err := awsarn.ParseRole(aws.ToString(listed.Arn))
			if err == nil && wanted(role.Name) {
				found = append(found, role)
			}
		}
		return page.Marker, nil
	})
	return found, err
}

// EntryRoles returns the roles that have an access entry, in the order of EKS.
// Entries of users are left out.
func (c *Client) EntryRoles(ctx context.Context) ([]awsarn.Role, error) {
	var found []awsarn.Role
	err := pages(func(token *string) (*string, error) {
		page, err := c.eks.ListAccessEntries(ctx, &eks.ListAccessEntriesInput{ClusterName: &c.hub.Name, NextToken: token})
		if err != nil {
			return nil, explain("eks:ListAccessEntries", c.hub.String(), err)
		}
		for _, principal := range page.AccessEntries {
			if role, err := awsarn.ParseRole(principal); err == nil {
				found = append(found, role)
			}
		}
		return page.NextToken, nil
	})
	return found, err
}

// pages lists all pages: it passes each page's marker to the next call, until a page
// has no marker.
func pages(list func(marker *string) (next *string, err error)) error {
	var marker *string
	for {
		next, err := list(marker)
		if err != nil || next == nil {
			return err
		}
		marker = next
	}
}

// Association is an association of EKS Pod Identity.
type Association struct {
	ID, Role string
}

// Association returns the association of a ServiceAccount, which has one at most;
// nil if it has none.
func (c *Client) Association(ctx context.Context, namespace, account string) (*Association, error) {
	listed, err := c.eks.ListPodIdentityAssociations(ctx, &eks.ListPodIdentityAssociationsInput{
		ClusterName: &c.hub.Name, Namespace: &namespace, ServiceAccount: &account,
	})
	if err != nil {
		return nil, explain("eks:ListPodIdentityAssociations", c.hub.String(), err)
	}
	if len(listed.Associations) == 0 {
		return nil, nil
	}
	only := listed.Associations[0]
	out, err := c.eks.DescribePodIdentityAssociation(ctx, &eks.DescribePodIdentityAssociationInput{
		ClusterName: &c.hub.Name, AssociationId: only.AssociationId,
	})
	if err != nil {
		return nil, explain("eks:DescribePodIdentityAssociation", aws.ToString(only.AssociationArn), err)
	}
	return &Association{ID: aws.ToString(only.AssociationId), Role: aws.ToString(out.Association.RoleArn)}, nil
}
