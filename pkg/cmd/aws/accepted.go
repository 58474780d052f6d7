package aws

import (
	"context"
	"strings"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/finding"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/cloud"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/identity"
)

// managedSteps are the checks of a managed cluster: what its own account has, and
// what the hub made for it.
func managedSteps(i *inspection) []finding.Step {
	return append(i.sideSteps(i.cluster.Account, i.hub.Account),
		finding.Step{Name: "the hub made a role for the cluster", Run: i.in(i.hub.Account, i.granted)},
		finding.Step{Name: "the hub's role is mapped to its group", Run: i.in(i.hub.Account, i.mapped)})
}

// repairs is what to do about something that the hub keeps in order.
func (i *inspection) repairs() string {
	return "the hub repairs it within an hour; what keeps it from that is shown on the hub by: " + i.env.Elsewhere("check cluster NAME")
}

// granted checks the role that the hub made for the cluster.
func (i *inspection) granted(ctx context.Context) finding.Outcome {
	arn := i.pair.HubRole()
	var err error
	if i.hubRole, err = i.hubClient.Role(ctx, arn); err != nil {
		return i.failure(err)
	}
	switch {
	case i.hubRole == nil:
		return finding.Caution("on the hub: "+i.env.Elsewhere("accept NAME"),
			"there is no role %s (iam:GetRole); the hub creates it when it accepts the cluster", arn)
	case i.hubRole.Tags[identity.TagHub] != i.hub.String():
		return finding.Bad("delete the role, or tag it if it is for this hub: aws iam tag-role --role-name "+arn.Name+
			" --tags Key="+identity.TagHub+",Value="+i.hub.String(),
			"the role %s has the tag %s=%q (iam:GetRole), so that the hub %s does not use it",
			arn, identity.TagHub, i.hubRole.Tags[identity.TagHub], i.hub)
	}
	if differences := i.hubRoleDifferences(); len(differences) > 0 {
		return finding.Bad(i.repairs(), "the trust policy or the tags of %s differ (iam:GetRole): %s", arn, strings.Join(differences, "; "))
	}
	return finding.Good("%s", arn)
}

// hubRoleDifferences returns in what the hub's role differs. A hub may allow the
// session tags of EKS Pod Identity to clusters that do not use it.
func (i *inspection) hubRoleDifferences() []string {
	want := i.pair.RoleOnHub(i.source)
	differences := want.Trust.Differences(i.hubRole.Trust)
	if len(i.pair.RoleOnHub(identity.Source{}).Trust.Differences(i.hubRole.Trust)) == 0 {
		differences = nil
	}
	for key, value := range i.hubRole.Tags.Lacking(tagsOf(want.Tags)) {
		differences = append(differences, "the tag "+key+" must be "+value)
	}
	return differences
}

// mapped checks the access entry of the role that the hub made.
func (i *inspection) mapped(ctx context.Context) finding.Outcome {
	if i.hubRole == nil {
		return finding.Skip("no role was found")
	}
	hub, err := i.hubClient.Authentication(ctx)
	if err != nil {
		return i.failure(err)
	}
	if !hub.Entries {
		return finding.Skip("the hub's authenticationMode is %s, so that its ConfigMap kube-system/aws-auth maps the role", hub.Mode)
	}
	entry, err := i.hubClient.Entry(ctx, i.pair.HubRole())
	switch {
	case err != nil:
		return i.failure(err)
	case entry == nil && hub.ConfigMap:
		return finding.Caution(i.repairs(), "%s has no access entry (eks:DescribeAccessEntry); the hub's ConfigMap kube-system/aws-auth may map it", i.pair.HubRole())
	case entry == nil:
		return finding.Bad(i.repairs(), "%s has no access entry (eks:DescribeAccessEntry)", i.pair.HubRole())
	}
	return i.entry(entry)
}

// entry checks an access entry. The cluster's name on the hub is in its user.
func (i *inspection) entry(entry *cloud.Entry) finding.Outcome {
	cluster, named := strings.CutPrefix(entry.Username, names.MappedClusterUser(""))
	want := cloud.Mapping{Username: entry.Username, Groups: []string{names.MappedClusterGroup(cluster)}}
	switch {
	case entry.Tags[identity.TagRoleID] != i.hubRole.ID:
		return finding.Bad(i.repairs(), "the access entry %s is of an earlier role of that name (eks:DescribeAccessEntry), so that EKS does not accept the role", entry.ARN)
	case !named || cluster == "" || !entry.Standard || !entry.Same(want):
		return finding.Bad(i.repairs(), "the access entry %s maps the role to the user %q and the groups %q (eks:DescribeAccessEntry)", entry.ARN, entry.Username, entry.Groups)
	}
	return finding.Good("%s is the ManagedCluster %s", i.pair.HubRole(), cluster)
}
