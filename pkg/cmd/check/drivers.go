package check

import (
	"context"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/access"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/origin"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/grant"
)

// driverScope is what the checks of a registration driver need of this command. other is
// what another product runs as the hub, once that is known; it may be nil.
func (s *scope) driverScope(other **origin.Installation) driver.CheckScope {
	foreign := func() *origin.Installation {
		if other == nil {
			return nil
		}
		return *other
	}
	return driver.CheckScope{
		Client: s.client, Command: s.env.Command, Elsewhere: s.env.Elsewhere, Kubectl: s.env.Kubectl,
		Fix:     func(command string) string { return fix(foreign(), command) },
		Foreign: func() bool { return foreign() != nil },
		Allowed: func(ctx context.Context, account types.NamespacedName, what authorizationv1.ResourceAttributes) (bool, error) {
			return access.Allowed(ctx, s.client, account, what)
		},
		Granted: func(ctx context.Context, kind driver.AuthType) ([]driver.Grant, error) {
			return grant.Recorded(ctx, s.client, names.HubNamespace, kind)
		},
	}
}
