package aws

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/smithy-go"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/finding"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/awsarn"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/excerpt"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/caller"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/cloud"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/identity"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/provision"
)

// inspection looks at one side of a registration in AWS. What a check finds is kept
// for those behind it.
type inspection struct {
	wanted

	env    cli.Env
	caller *caller.Caller
	// client looks at the side's own account and EKS cluster, hubClient at the hub's.
	client, hubClient *cloud.Client
	// prerequisites is the command that prints what has to be there.
	prerequisites string

	// described is the side's EKS cluster, found its role; nil if there is none.
	described *cloud.Cluster
	found     *cloud.Role
	// hubRole is the role that the hub made for the cluster; nil if there is none.
	hubRole *cloud.Role
}

// look is how a check looks.
type look func(context.Context) finding.Outcome

// sideSteps are the checks of a cluster and of the role that its pods assume.
func (i *inspection) sideSteps(accounts ...string) []finding.Step {
	steps := []finding.Step{
		{Name: "AWS accepts the credentials", Needed: true, Run: func(ctx context.Context) finding.Outcome {
			return i.identify(ctx, accounts...)
		}},
		{Name: "the EKS cluster exists", Run: i.own(i.describe)},
	}
	if i.source.PodIdentity() {
		for _, name := range i.role.Accounts.Names {
			steps = append(steps, finding.Step{
				Name: "EKS Pod Identity gives the role to " + name,
				Run:  i.own(func(ctx context.Context) finding.Outcome { return i.association(ctx, name) }),
			})
		}
	} else {
		steps = append(steps,
			finding.Step{Name: "the OIDC issuer is the cluster's", Run: i.own(i.issuer)},
			finding.Step{Name: "the account has the OIDC provider", Run: i.own(i.provider)})
	}
	steps = append(steps,
		finding.Step{Name: "the role exists", Run: i.own(i.exists)},
		finding.Step{Name: "the role's trust policy is right", Run: i.ofRole(i.trust)},
		finding.Step{Name: "the role's access policy is right", Run: i.ofRole(i.access)})
	if len(i.role.Tags) > 0 {
		steps = append(steps, finding.Step{Name: "the role's tags are right", Run: i.ofRole(i.tags)})
	}
	return steps
}

// identify finds out whose the credentials are: they must be of one of the accounts.
func (i *inspection) identify(ctx context.Context, accounts ...string) finding.Outcome {
	err := i.caller.Identify(ctx, accounts...)
	if explained, ok := errors.AsType[*cli.Explained](err); ok {
		return finding.Bad(explained.Try, "%s", explained.Problem)
	}
	if err != nil {
		return finding.Broken(err)
	}
	return finding.Good("%s", i.caller.ARN)
}

// in makes a check only with credentials of an account.
func (i *inspection) in(account string, check look) look {
	return func(ctx context.Context) finding.Outcome {
		if i.caller.Account != account {
			return finding.Skip("it is in account %s, and the credentials are of account %s", account, i.caller.Account)
		}
		return check(ctx)
	}
}

// own makes a check only with credentials of the side's own account.
func (i *inspection) own(check look) look { return i.in(i.cluster.Account, check) }

// ofRole makes a check only of a role that was found.
func (i *inspection) ofRole(check look) look {
	return i.own(func(ctx context.Context) finding.Outcome {
		if i.found == nil {
			return finding.Skip("no role was found")
		}
		return check(ctx)
	})
}

// failure reports an error of looking into AWS.
func (i *inspection) failure(err error) finding.Outcome {
	call, ok := errors.AsType[*cloud.Error](err)
	if !ok {
		return finding.Broken(err)
	}
	answer, answered := errors.AsType[smithy.APIError](err)
	switch {
	case cloud.Denied(err):
		return finding.Outcome{
			Status: finding.Unknown, Message: fmt.Sprintf("AWS does not allow %s on %s to %s", call.Action, call.Resource, i.caller.ARN),
			Try: "allow " + call.Action + " on " + call.Resource + ", or use other credentials",
		}
	case caller.Late(err):
		return finding.Bad(caller.MoreTime, "AWS did not answer in time: %s on %s", call.Action, call.Resource)
	case !answered:
		return finding.Bad("check the network and the proxy settings", "AWS did not answer %s on %s", call.Action, call.Resource)
	}
	const longest = 300
	return finding.Bad("check again; if it stays, look for the code in the reference of the AWS call", "the AWS call %s on %s failed with %s: %s",
		call.Action, call.Resource, call.Code, excerpt.Of(strings.Join(strings.Fields(answer.ErrorMessage()), " "), longest))
}

// describe checks that the EKS cluster is there.
func (i *inspection) describe(ctx context.Context) finding.Outcome {
	var err error
	if i.described, err = i.client.Cluster(ctx); err != nil {
		return i.failure(err)
	}
	if i.described == nil {
		return finding.Bad("list the clusters with: aws eks list-clusters --region "+i.cluster.Region, "there is no EKS cluster %s (eks:DescribeCluster)", i.cluster)
	}
	return finding.Good("%s is %s, with the authenticationMode %s", i.cluster, i.described.Status, i.described.Mode)
}

// issuer compares the issuer that was given with the cluster's.
func (i *inspection) issuer(context.Context) finding.Outcome {
	switch {
	case i.described == nil:
		return finding.Skip("EKS did not describe the cluster")
	case i.described.Issuer != i.source.Issuer:
		return finding.Bad("give --"+flagIssuer+" "+i.described.Issuer, "the issuer of %s is %s, and --%s is %s (eks:DescribeCluster)",
			i.cluster, i.described.Issuer, flagIssuer, i.source.Issuer)
	}
	return finding.Good("%s", i.described.Issuer)
}

// audience is whom the tokens of ServiceAccounts are for that AWS takes.
const audience = "sts.amazonaws.com"

// provider checks the OIDC provider that the role trusts.
func (i *inspection) provider(ctx context.Context) finding.Outcome {
	cluster := i.cluster
	provider := awsarn.Provider{Partition: cluster.Partition, Account: cluster.Account, Issuer: i.source.Issuer}
	audiences, found, err := i.client.ProviderAudiences(ctx, provider)
	switch {
	case err != nil:
		return i.failure(err)
	case !found:
		return finding.Bad("aws iam create-open-id-connect-provider --url https://"+provider.Issuer+" --client-id-list "+audience,
			"there is no OIDC provider %s (iam:GetOpenIDConnectProvider)", provider)
	case !slices.Contains(audiences, audience):
		return finding.Bad("aws iam add-client-id-to-open-id-connect-provider --open-id-connect-provider-arn "+provider.String()+" --client-id "+audience,
			"the OIDC provider %s does not take tokens for %s (iam:GetOpenIDConnectProvider)", provider, audience)
	}
	return finding.Good("%s", provider)
}

// association checks that pods of a ServiceAccount get the role.
func (i *inspection) association(ctx context.Context, account string) finding.Outcome {
	cluster, namespace, role := i.cluster, i.role.Accounts.Namespace, i.role.ARN.String()
	found, err := i.client.Association(ctx, namespace, account)
	at := fmt.Sprintf("pod-identity-association --region %s --cluster-name %s ", cluster.Region, cluster.Name)
	switch {
	case err != nil:
		return i.failure(err)
	case found == nil:
		return finding.Bad("aws eks create-"+at+fmt.Sprintf("--namespace %s --service-account %s --role-arn %s", namespace, account, role),
			"%s has no association for the ServiceAccount %s/%s (eks:ListPodIdentityAssociations)", cluster, namespace, account)
	case found.Role != role:
		return finding.Bad("aws eks update-"+at+fmt.Sprintf("--association-id %s --role-arn %s", found.ID, role),
			"the association %s of %s gives %s to the ServiceAccount %s/%s, and not %s (eks:DescribePodIdentityAssociation)",
			found.ID, cluster, found.Role, namespace, account, role)
	}
	return finding.Good("association %s for %s/%s", found.ID, namespace, account)
}

// exists checks that the role is there.
func (i *inspection) exists(ctx context.Context) finding.Outcome {
	var err error
	if i.found, err = i.client.Role(ctx, i.role.ARN); err != nil {
		return i.failure(err)
	}
	if i.found == nil {
		return finding.Bad("create it as printed by: "+i.prerequisites, "there is no role %s (iam:GetRole)", i.role.ARN)
	}
	return finding.Good("%s", i.role.ARN)
}

func (i *inspection) trust(context.Context) finding.Outcome {
	differences := i.role.Trust.Differences(i.found.Trust)
	if len(differences) == 0 {
		return finding.Good("")
	}
	return i.differs("trust policy", "iam:GetRole", differences, i.role.Trust, "update-assume-role-policy")
}

// differs reports a policy of the role that is not as it has to be.
func (i *inspection) differs(what, call string, differences []string, want identity.Policy, fix ...string) finding.Outcome {
	document, err := want.Compact()
	if err != nil {
		return finding.Broken(err)
	}
	command := append([]string{"aws iam"}, fix...)
	command = append(command, "--role-name", i.role.ARN.Name, "--policy-document", cli.Quoted(document))
	return finding.Bad(strings.Join(command, " "), "the %s of %s differs (%s): %s", what, i.role.ARN, call, strings.Join(differences, "; "))
}

// access looks for the access policy among those of the role. Those that are
// attached are read only if none in the role is the one.
func (i *inspection) access(ctx context.Context) finding.Outcome {
	policies, err := i.client.Policies(ctx, i.role.ARN)
	if err != nil {
		return i.failure(err)
	}
	inline := slices.Sorted(maps.Keys(policies.Inline))
	for _, name := range inline {
		if len(i.role.Access.Differences(policies.Inline[name])) == 0 {
			return finding.Good("it is the policy %s of the role", name)
		}
	}
	name, err := i.attached(ctx, policies.Attached)
	switch {
	case name != "":
		return finding.Good("it is the policy %s, which is attached to the role", name)
	case err != nil:
		return i.failure(err)
	}
	fix := []string{"put-role-policy", "--policy-name", provision.PolicyName}
	if document, ok := policies.Inline[provision.PolicyName]; ok {
		return i.differs("policy "+provision.PolicyName, "iam:GetRolePolicy", i.role.Access.Differences(document), *i.role.Access, fix...)
	}
	others := append(inline, policies.Attached...)
	if len(others) == 0 {
		return i.differs("access policy", "iam:ListRolePolicies", []string{"the role has no policy"}, *i.role.Access, fix...)
	}
	found := i.differs("access policy", "iam:GetRolePolicy, iam:GetPolicyVersion", []string{"no policy of the role is the printed one"}, *i.role.Access, fix...)
	return finding.Caution("compare with the policy in: "+found.Try, "%s; whether these allow as much was not checked: %s", found.Message, strings.Join(others, ", "))
}

// attached returns the first of the attached policies that is the access policy. The
// error is why one of them could not be read; it counts only if no other is the one.
func (i *inspection) attached(ctx context.Context, policies []string) (name string, unread error) {
	for _, name := range policies {
		document, err := i.client.AttachedPolicy(ctx, name)
		if err == nil && len(i.role.Access.Differences(document)) == 0 {
			return name, nil
		}
		unread = cmp.Or(unread, err)
	}
	return "", unread
}

func (i *inspection) tags(context.Context) finding.Outcome {
	lacking := i.found.Tags.Lacking(tagsOf(i.role.Tags))
	if len(lacking) == 0 {
		return finding.Good("")
	}
	var differences, fix []string
	for _, key := range slices.Sorted(maps.Keys(lacking)) {
		differences = append(differences, fmt.Sprintf("%s is %q, and must be %q", key, i.found.Tags[key], lacking[key]))
		fix = append(fix, "Key="+key+",Value="+lacking[key])
	}
	return finding.Bad("aws iam tag-role --role-name "+i.role.ARN.Name+" --tags "+strings.Join(fix, " "),
		"the tags of %s differ (iam:GetRole): %s", i.role.ARN, strings.Join(differences, "; "))
}

func tagsOf(list []identity.Tag) cloud.Tags {
	tags := cloud.Tags{}
	for _, tag := range list {
		tags[tag.Key] = tag.Value
	}
	return tags
}
