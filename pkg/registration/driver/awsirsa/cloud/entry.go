package cloud

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/awsarn"
)

// standard is the type of access entries for principals other than nodes.
const standard = "STANDARD"

// Mapping is who an IAM role is in the hub.
type Mapping struct {
	Username string
	Groups   []string
}

// Same reports whether two mappings are equal, regardless of the order of groups.
func (m Mapping) Same(other Mapping) bool {
	return m.Username == other.Username && slices.Equal(slices.Sorted(slices.Values(m.Groups)), slices.Sorted(slices.Values(other.Groups)))
}

// Entry is an access entry of a role. EKS ties it to the role that exists when the
// entry is created: a later role of the same name is not let in by it.
type Entry struct {
	Mapping

	// ARN is the entry's own.
	ARN  string
	Tags Tags
	// Standard is whether it is of the type STANDARD; no other maps to groups of
	// one's choice.
	Standard bool
}

// Entry returns the access entry of a role, nil if there is none.
func (c *Client) Entry(ctx context.Context, role awsarn.Role) (*Entry, error) {
	out, err := c.eks.DescribeAccessEntry(ctx, &eks.DescribeAccessEntryInput{ClusterName: &c.hub.Name, PrincipalArn: aws.String(role.String())})
	if has(err, codeNoResource) {
		return nil, nil
	}
	if err != nil {
		return nil, explain("eks:DescribeAccessEntry", c.entryOf(role), err)
	}
	got := out.AccessEntry
	return &Entry{
		Mapping: Mapping{Username: aws.ToString(got.Username), Groups: got.KubernetesGroups},
		ARN:     aws.ToString(got.AccessEntryArn), Tags: got.Tags, Standard: aws.ToString(got.Type) == standard,
	}, nil
}

// entryOf names the access entry of a role, for errors and policies.
func (c *Client) entryOf(role awsarn.Role) string {
	return awsarn.AccessEntries(c.hub, role.Account, role.Name)
}

// CreateEntry creates the access entry of a role. See UnknownRole for an error
// that time heals.
func (c *Client) CreateEntry(ctx context.Context, role awsarn.Role, to Mapping, tags Tags) error {
	_, err := c.eks.CreateAccessEntry(ctx, &eks.CreateAccessEntryInput{
		ClusterName: &c.hub.Name, PrincipalArn: aws.String(role.String()), Type: aws.String(standard),
		Username: &to.Username, KubernetesGroups: to.Groups, Tags: tags,
	})
	return explain("eks:CreateAccessEntry", c.hub.String(), err)
}

// UpdateEntry changes whom the access entry of a role stands for.
func (c *Client) UpdateEntry(ctx context.Context, role awsarn.Role, to Mapping) error {
	_, err := c.eks.UpdateAccessEntry(ctx, &eks.UpdateAccessEntryInput{
		ClusterName: &c.hub.Name, PrincipalArn: aws.String(role.String()), Username: &to.Username, KubernetesGroups: to.Groups,
	})
	return explain("eks:UpdateAccessEntry", c.entryOf(role), err)
}

// TagEntry adds tags to an access entry, or changes their values.
func (c *Client) TagEntry(ctx context.Context, entry *Entry, tags Tags) error {
	_, err := c.eks.TagResource(ctx, &eks.TagResourceInput{ResourceArn: &entry.ARN, Tags: tags})
	return explain("eks:TagResource", entry.ARN, err)
}

// DeleteEntry deletes the access entry of a role. A missing entry is not an error.
func (c *Client) DeleteEntry(ctx context.Context, role awsarn.Role) error {
	_, err := c.eks.DeleteAccessEntry(ctx, &eks.DeleteAccessEntryInput{ClusterName: &c.hub.Name, PrincipalArn: aws.String(role.String())})
	return explain("eks:DeleteAccessEntry", c.entryOf(role), ignore(err, codeNoResource))
}
