package awsirsa

import (
	"context"
	"fmt"
	"maps"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/awsarn"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/cloud"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/identity"
)

// target is the subject of a grant, with a client of its hub.
type target struct {
	client *cloud.Client
	pair   identity.Pair
	role   awsarn.Role
	// wanted is the role as it has to be, trust its policy, tags the tags that can
	// be repaired.
	wanted identity.Role
	trust  string
	tags   cloud.Tags
	extra  cloud.Tags
	// user is who the role is on the hub.
	user cloud.Mapping
}

// anyIssuer stands for a cluster whose agents get credentials from an OIDC
// provider; which one does not matter to the role on the hub.
const anyIssuer = "oidc"

func (h *Hub) target(grant driver.Grant) (*target, error) {
	pair, role, err := recorded(grant)
	if err != nil {
		return nil, err
	}
	source := identity.Source{Issuer: anyIssuer}
	if h.config.PodIdentity {
		source = identity.Source{}
	}
	t := &target{
		client: cloud.New(h.aws, pair.Hub), pair: pair, role: role, wanted: pair.RoleOnHub(source),
		extra: h.config.Tags, tags: cloud.Tags{},
		user: cloud.Mapping{Username: names.MappedClusterUser(grant.Cluster), Groups: []string{names.MappedClusterGroup(grant.Cluster)}},
	}
	maps.Copy(t.tags, h.config.Tags)
	for _, tag := range t.wanted.Tags {
		t.tags[tag.Key] = tag.Value
	}
	t.trust, err = t.wanted.Trust.Compact()
	return t, err
}

// owned returns tags with the one that makes something this hub's.
func (t *target) owned(tags cloud.Tags) cloud.Tags {
	all := cloud.Tags{identity.TagHub: t.pair.Hub.String()}
	maps.Copy(all, tags)
	return all
}

// owns reports whether a role is this hub's.
func (t *target) owns(role *cloud.Role) bool {
	return role.Tags[identity.TagHub] == t.pair.Hub.String()
}

// foreign is the error about a role that is not this hub's.
func (t *target) foreign(role *cloud.Role) error {
	owner := role.Tags[identity.TagHub]
	if owner == "" {
		return fmt.Errorf("role %s exists without the tag of the hub; delete it, or tag it with %s=%s if it is for this hub",
			t.role, identity.TagHub, t.pair.Hub)
	}
	return fmt.Errorf("the role %s exists for another hub, %.200q: the names of both hubs and of both managed clusters are the same, and only their regions differ; "+
		"use an EKS cluster of another name", t.role, owner)
}

// ensureRole creates or repairs the role.
func (t *target) ensureRole(ctx context.Context) (*cloud.Role, error) {
	role, err := t.client.Role(ctx, t.role)
	if err != nil {
		return nil, err
	}
	if role == nil {
		role, err = t.client.CreateRole(ctx, t.role, t.wanted.Purpose, t.trust, t.owned(t.tags))
		return role, t.principalPending(err)
	}
	if !t.owns(role) {
		return nil, t.foreign(role)
	}
	if len(t.wanted.Trust.Differences(role.Trust)) > 0 {
		if err := t.client.SetTrust(ctx, t.role, t.trust); err != nil {
			return nil, t.principalPending(err)
		}
	}
	if lacking := role.Tags.Lacking(t.tags); len(lacking) > 0 {
		if err := t.client.TagRole(ctx, t.role, lacking); err != nil {
			return nil, err
		}
	}
	return role, nil
}

// principalPending turns the error about a managed cluster's role that does not exist
// into a wait for its creation.
func (t *target) principalPending(err error) error {
	if !cloud.NoPrincipal(err) {
		return err
	}
	return &waitingError{
		sentence: fmt.Sprintf("AWS does not know the role %s, with which the agents of %s assume the role %s. "+
			"Create it as printed by: kubectl ocm aws prerequisites managed --hub-cluster-arn %s --managed-cluster-arn %s",
			t.pair.ManagedRole(), t.pair.Managed.Name, t.role, t.pair.Hub, t.pair.Managed),
		after: principalRecheck,
	}
}
