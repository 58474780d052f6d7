package cloud

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
)

// call is one call of an AWS service.
type call[Input, Output, Options any] func(context.Context, *Input, ...func(*Options)) (*Output, error)

// iamCalls are the calls of IAM that a Client makes. An iam.Client that becomes part
// of an interface value brings all its 170 calls into the binary, 5 MB of code that
// nothing calls, because the linker cannot determine which of them reflection uses.
type iamCalls struct {
	GetRole                call[iam.GetRoleInput, iam.GetRoleOutput, iam.Options]
	CreateRole             call[iam.CreateRoleInput, iam.CreateRoleOutput, iam.Options]
	DeleteRole             call[iam.DeleteRoleInput, iam.DeleteRoleOutput, iam.Options]
	TagRole                call[iam.TagRoleInput, iam.TagRoleOutput, iam.Options]
	UpdateAssumeRolePolicy call[iam.UpdateAssumeRolePolicyInput, iam.UpdateAssumeRolePolicyOutput, iam.Options]

	GetRolePolicy            call[iam.GetRolePolicyInput, iam.GetRolePolicyOutput, iam.Options]
	DeleteRolePolicy         call[iam.DeleteRolePolicyInput, iam.DeleteRolePolicyOutput, iam.Options]
	DetachRolePolicy         call[iam.DetachRolePolicyInput, iam.DetachRolePolicyOutput, iam.Options]
	GetPolicy                call[iam.GetPolicyInput, iam.GetPolicyOutput, iam.Options]
	GetPolicyVersion         call[iam.GetPolicyVersionInput, iam.GetPolicyVersionOutput, iam.Options]
	GetOpenIDConnectProvider call[iam.GetOpenIDConnectProviderInput, iam.GetOpenIDConnectProviderOutput, iam.Options]

	listRoles                call[iam.ListRolesInput, iam.ListRolesOutput, iam.Options]
	listRolePolicies         call[iam.ListRolePoliciesInput, iam.ListRolePoliciesOutput, iam.Options]
	listAttachedRolePolicies call[iam.ListAttachedRolePoliciesInput, iam.ListAttachedRolePoliciesOutput, iam.Options]
}

func newIAM(client *iam.Client) iamCalls {
	return iamCalls{
		GetRole:                client.GetRole,
		CreateRole:             client.CreateRole,
		DeleteRole:             client.DeleteRole,
		TagRole:                client.TagRole,
		UpdateAssumeRolePolicy: client.UpdateAssumeRolePolicy,

		GetRolePolicy:            client.GetRolePolicy,
		DeleteRolePolicy:         client.DeleteRolePolicy,
		DetachRolePolicy:         client.DetachRolePolicy,
		GetPolicy:                client.GetPolicy,
		GetPolicyVersion:         client.GetPolicyVersion,
		GetOpenIDConnectProvider: client.GetOpenIDConnectProvider,

		listRoles:                client.ListRoles,
		listRolePolicies:         client.ListRolePolicies,
		listAttachedRolePolicies: client.ListAttachedRolePolicies,
	}
}

// ListRoles implements iam.ListRolesAPIClient.
func (c iamCalls) ListRoles(ctx context.Context, in *iam.ListRolesInput, o ...func(*iam.Options)) (*iam.ListRolesOutput, error) {
	return c.listRoles(ctx, in, o...)
}

// ListRolePolicies implements iam.ListRolePoliciesAPIClient.
func (c iamCalls) ListRolePolicies(ctx context.Context, in *iam.ListRolePoliciesInput, o ...func(*iam.Options)) (*iam.ListRolePoliciesOutput, error) {
	return c.listRolePolicies(ctx, in, o...)
}

// ListAttachedRolePolicies implements iam.ListAttachedRolePoliciesAPIClient.
func (c iamCalls) ListAttachedRolePolicies(ctx context.Context, in *iam.ListAttachedRolePoliciesInput, o ...func(*iam.Options)) (*iam.ListAttachedRolePoliciesOutput, error) {
	return c.listAttachedRolePolicies(ctx, in, o...)
}

// eksCalls are the calls of EKS that a Client makes; see iamCalls.
type eksCalls struct {
	DescribeCluster     call[eks.DescribeClusterInput, eks.DescribeClusterOutput, eks.Options]
	DescribeAccessEntry call[eks.DescribeAccessEntryInput, eks.DescribeAccessEntryOutput, eks.Options]
	CreateAccessEntry   call[eks.CreateAccessEntryInput, eks.CreateAccessEntryOutput, eks.Options]
	UpdateAccessEntry   call[eks.UpdateAccessEntryInput, eks.UpdateAccessEntryOutput, eks.Options]
	DeleteAccessEntry   call[eks.DeleteAccessEntryInput, eks.DeleteAccessEntryOutput, eks.Options]
	TagResource         call[eks.TagResourceInput, eks.TagResourceOutput, eks.Options]

	ListPodIdentityAssociations    call[eks.ListPodIdentityAssociationsInput, eks.ListPodIdentityAssociationsOutput, eks.Options]
	DescribePodIdentityAssociation call[eks.DescribePodIdentityAssociationInput, eks.DescribePodIdentityAssociationOutput, eks.Options]

	listAccessEntries call[eks.ListAccessEntriesInput, eks.ListAccessEntriesOutput, eks.Options]
}

func newEKS(client *eks.Client) eksCalls {
	return eksCalls{
		DescribeCluster:     client.DescribeCluster,
		DescribeAccessEntry: client.DescribeAccessEntry,
		CreateAccessEntry:   client.CreateAccessEntry,
		UpdateAccessEntry:   client.UpdateAccessEntry,
		DeleteAccessEntry:   client.DeleteAccessEntry,
		TagResource:         client.TagResource,

		ListPodIdentityAssociations:    client.ListPodIdentityAssociations,
		DescribePodIdentityAssociation: client.DescribePodIdentityAssociation,

		listAccessEntries: client.ListAccessEntries,
	}
}

// ListAccessEntries implements eks.ListAccessEntriesAPIClient.
func (c eksCalls) ListAccessEntries(ctx context.Context, in *eks.ListAccessEntriesInput, o ...func(*eks.Options)) (*eks.ListAccessEntriesOutput, error) {
	return c.listAccessEntries(ctx, in, o...)
}
