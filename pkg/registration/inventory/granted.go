package inventory

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/grant"
)

// Granted returns what the hub recorded that its drivers granted, by the names of the
// clusters.
func Granted(ctx context.Context, reader client.Reader, known driver.Catalog) (map[string]string, error) {
	granted := map[string]string{}
	for _, by := range known.Identifiers() {
		grants, err := grant.Recorded(ctx, reader, names.HubNamespace, by.Type())
		if err != nil {
			return nil, err
		}
		for _, known := range grants {
			if granted[known.Cluster], err = by.Recorded(known); err != nil {
				return nil, err
			}
		}
	}
	return granted, nil
}
