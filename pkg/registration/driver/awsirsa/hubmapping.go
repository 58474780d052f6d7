package awsirsa

import (
	"context"
	"fmt"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/awsauth"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/cloud"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/identity"
)

// MappingMode is how roles are mapped to users of the hub.
type MappingMode string

// The ways to map roles.
const (
	// MapAuto uses access entries where the hub's authenticationMode has them, and
	// the ConfigMap aws-auth elsewhere.
	MapAuto MappingMode = "auto"
	// MapAccessEntry uses EKS access entries.
	MapAccessEntry MappingMode = "access-entry"
	// MapAWSAuth uses the ConfigMap kube-system/aws-auth.
	MapAWSAuth MappingMode = "aws-auth"
)

// ParseMapping reads a MappingMode.
func ParseMapping(s string) (MappingMode, error) {
	switch m := MappingMode(s); m {
	case MapAuto, MapAccessEntry, MapAWSAuth:
		return m, nil
	}
	return "", fmt.Errorf("%q must be one of %s, %s, %s", s, MapAuto, MapAccessEntry, MapAWSAuth)
}

// mapRole maps a role as one of the ways does.
type mapRole func(ctx context.Context, t *target, role *cloud.Role) error

// mapping returns the way that is configured, if EKS would go by it.
func (h *Hub) mapping(authentication cloud.Authentication) (mapRole, error) {
	wanted := h.config.Mapping
	if wanted == MapAuto || wanted == "" {
		wanted = MapAWSAuth
		if authentication.Entries {
			wanted = MapAccessEntry
		}
	}
	switch {
	case wanted == MapAccessEntry && authentication.Entries:
		return ensureEntry, nil
	case wanted == MapAWSAuth && authentication.ConfigMap:
		return h.ensureLine, nil
	}
	return nil, fmt.Errorf("the hub %s has the authenticationMode %s, with which EKS does not read the mapping %s; "+
		"set --aws-identity-mapping=%s, or change the mode with: aws eks update-cluster-config",
		h.config.Cluster, authentication.Mode, wanted, MapAuto)
}

// ensureLine keeps the role's line in the ConfigMap aws-auth, which maps a role by
// its ARN: a later role of that name is let in as well.
func (h *Hub) ensureLine(ctx context.Context, t *target, _ *cloud.Role) error {
	return h.awsAuth.Ensure(ctx, awsauth.Line{RoleARN: t.role.String(), Username: t.user.Username, Groups: t.user.Groups})
}

// ensureEntry creates, repairs or replaces the access entry of the role. An entry
// that was created for an earlier role of that name does not authenticate the new one.
// EKS does not show for which role an entry was created; the hub's tag does.
func ensureEntry(ctx context.Context, t *target, role *cloud.Role) error {
	entry, err := t.client.Entry(ctx, t.role)
	if err != nil {
		return err
	}
	if entry != nil && (entry.Tags[identity.TagRoleID] != role.ID || !entry.Standard) {
		if err := t.client.DeleteEntry(ctx, t.role); err != nil {
			return err
		}
		entry = nil
	}
	if entry == nil {
		return t.createEntry(ctx, role)
	}
	if !entry.Same(t.user) {
		if err := t.client.UpdateEntry(ctx, t.role, t.user); err != nil {
			return err
		}
	}
	if lacking := entry.Tags.Lacking(t.entryTags(role)); len(lacking) > 0 {
		return t.client.TagEntry(ctx, entry, lacking)
	}
	return nil
}

func (t *target) entryTags(role *cloud.Role) cloud.Tags {
	tags := t.owned(t.extra)
	tags[identity.TagRoleID] = role.ID
	return tags
}

func (t *target) createEntry(ctx context.Context, role *cloud.Role) error {
	err := t.client.CreateEntry(ctx, t.role, t.user, t.entryTags(role))
	if !cloud.UnknownRole(err) {
		return err
	}
	return &waitingError{
		sentence: fmt.Sprintf("role %s is not visible to EKS yet, which takes some seconds for a new role: %v", t.role, err),
		after:    propagationRecheck,
	}
}
