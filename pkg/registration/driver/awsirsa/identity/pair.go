package identity

import (
	"crypto/md5" //nolint:gosec // it names roles, it protects nothing
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/awsarn"
)

const (
	managedRolePrefix = "ocm-managed-cluster-"
	hubRolePrefix     = "ocm-hub-"
	creatorRoleSuffix = "_managed-cluster-identity-creator"
)

// CreatorRoleFlag is the flag that names the role of a hub controller whose
// default name would be too long for IAM.
const CreatorRoleFlag = "aws-identity-creator-role-arn"

// Pair is a managed cluster and the hub that it registers with.
type Pair struct {
	Hub, Managed awsarn.Cluster
}

// NewPair returns the pair of two EKS clusters. It is an error if they are in different
// partitions, between which no role can be assumed.
func NewPair(hub, managed awsarn.Cluster) (Pair, error) {
	if hub.Partition != managed.Partition {
		return Pair{}, fmt.Errorf("the hub is in the AWS partition %s and the managed cluster in %s; roles cannot be assumed across partitions",
			hub.Partition, managed.Partition)
	}
	return Pair{Hub: hub, Managed: managed}, nil
}

// Tags that mark resources of the hub. A role's identifier leaves out the regions, so
// that a role of another hub can have the same name and the same other tags.
const (
	TagHub = "open-cluster-management.io/hub-cluster-arn"
	// TagRoleID is, on an access entry, the unique ID of the role it was created for.
	TagRoleID = "open-cluster-management.io/role-id"
)

// Tag is a tag of a role.
type Tag struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// Tags returns the tags of the managed cluster's role, sorted by key. The hub's role
// recognizes it by them.
// See docs/reference/wire-contract.md#aws-trust.
func (p Pair) Tags() []Tag {
	return []Tag{
		{"hub_cluster_account_id", p.Hub.Account},
		{"hub_cluster_name", p.Hub.Name},
		{"managed_cluster_account_id", p.Managed.Account},
		{"managed_cluster_name", p.Managed.Name},
	}
}

// Identifier names the pair in its roles. It leaves out the regions: pairs whose
// clusters differ in nothing but the region have the same identifier.
// See docs/reference/wire-contract.md#aws-names.
func (p Pair) Identifier() string {
	tags := p.Tags()
	values := make([]string, len(tags))
	for i, tag := range tags {
		values[i] = tag.Value
	}
	return identifier(values...)
}

// identifier is the MD5 sum, in hexadecimal, of the values with a # between them.
func identifier(values ...string) string {
	sum := md5.Sum([]byte(strings.Join(values, "#"))) //nolint:gosec // see the import
	return hex.EncodeToString(sum[:])
}

// ManagedRole is the role in the managed cluster's account that its agents assume.
func (p Pair) ManagedRole() awsarn.Role { return roleOf(p.Managed, managedRolePrefix+p.Identifier()) }

// HubRole is the role in the hub's account that the hub makes for the managed
// cluster, and that ManagedRole assumes.
func (p Pair) HubRole() awsarn.Role { return roleOf(p.Hub, HubRoleName(p.Identifier())) }

// HubRoleName is the name of the role that a hub makes for the managed cluster with
// an identifier.
func HubRoleName(identifier string) string { return hubRolePrefix + identifier }

// IsHubRole reports whether a role is called as those that hubs make for managed
// clusters.
func IsHubRole(name string) bool { return strings.HasPrefix(name, hubRolePrefix) }

func roleOf(cluster awsarn.Cluster, name string) awsarn.Role {
	return awsarn.Role{Partition: cluster.Partition, Account: cluster.Account, Path: "/", Name: name}
}

// NameTooLongError says that the default name of a role does not fit into IAM.
type NameTooLongError struct{ Name string }

// Error implements error.
func (e *NameTooLongError) Error() string {
	return fmt.Sprintf("the role name %s has %d characters, more than the %d of IAM", e.Name, len(e.Name), awsarn.MaxRoleName)
}

// Hint says what to do.
func (e *NameTooLongError) Hint() string {
	return "create a role with a shorter name, and name it with --" + CreatorRoleFlag
}

// CreatorRole is the role in the hub's account with which the hub's registration
// controller makes the roles of managed clusters. The error is a
// *NameTooLongError: names of EKS clusters have up to 100 characters.
func CreatorRole(hub awsarn.Cluster) (awsarn.Role, error) {
	name := hub.Name + creatorRoleSuffix
	if len(name) > awsarn.MaxRoleName {
		return awsarn.Role{}, &NameTooLongError{name}
	}
	return roleOf(hub, name), nil
}

// CheckOwner returns an error if a role is not of a cluster's account.
func CheckOwner(role awsarn.Role, cluster awsarn.Cluster) error {
	if role.Account != cluster.Account || role.Partition != cluster.Partition {
		return fmt.Errorf("the role %s is not of account %s in partition %s, which %s is in", role, cluster.Account, cluster.Partition, cluster)
	}
	return nil
}
