package diagnose

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

// Driver returns the scope of the checks of a registration driver. foreign returns what
// another product runs as the hub, nil if none does or that is not known yet.
func (s Scope) Driver(foreign func() *origin.Installation) driver.CheckScope {
	return driver.CheckScope{
		Client: s.Client, Command: s.Command, Elsewhere: s.Elsewhere, Kubectl: s.Kubectl,
		Fix:     func(command string) string { return Fix(foreign(), command) },
		Foreign: func() bool { return foreign() != nil },
		Allowed: func(ctx context.Context, account types.NamespacedName, what authorizationv1.ResourceAttributes) (bool, error) {
			return access.Allowed(ctx, s.Client, account, what)
		},
		Granted: func(ctx context.Context, kind driver.AuthType) ([]driver.Grant, error) {
			return grant.Recorded(ctx, s.Client, names.HubNamespace, kind)
		},
	}
}
