package addons

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/inventory"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/fleet"
)

// Hub returns a client of the hub that the command's connection flags name. It is
// an error if that is no hub, or none that knows add-ons.
func Hub(ctx context.Context, env cli.Env) (client.Client, error) {
	c, err := env.Kube.Client()
	if err != nil {
		return nil, err
	}
	return c, RequireHub(ctx, env, c)
}

// RequireHub is an error unless the cluster is a hub that knows add-ons.
func RequireHub(ctx context.Context, env cli.Env, c client.Client) error {
	if err := fleet.RequireHub(ctx, env, c); err != nil {
		return err
	}
	_, err := c.RESTMapper().RESTMapping(schema.GroupKind{Group: addonv1beta1.GroupName, Kind: "ManagedClusterAddOn"}, "v1beta1")
	if apimeta.IsNoMatchError(err) {
		return cli.Blockedf("wait for it with: "+env.Command("init --wait")+", or see what is wrong with: "+env.Command("check hub"),
			"the hub does not serve ManagedClusterAddOns (%s/v1beta1)", addonv1beta1.GroupName)
	}
	return err
}

// Missing returns an error about the names of a filter that chose nothing.
func Missing(env cli.Env, f inventory.Filter, found []inventory.AddOn) error {
	if len(f.Names) == 0 {
		return nil
	}
	for _, name := range f.Names {
		if slices.ContainsFunc(found, func(a inventory.AddOn) bool { return a.Name == name }) {
			continue
		}
		try := "list the add-ons with: " + env.Command("get addons")
		if len(f.Clusters) > 0 {
			return cli.NotFoundf(try, "no add-on %s on %s", name, joined(f.Clusters))
		}
		return cli.NotFoundf(try, "no add-on %s on any cluster", name)
	}
	return nil
}

// CompleteNames completes the names of add-ons, also behind commas.
func CompleteNames(env cli.Env) cobra.CompletionFunc {
	return cli.CompleteObjects(env, func() client.ObjectList { return &addonv1beta1.ManagedClusterAddOnList{} })
}

func joined(list []string) string { return strings.Join(list, ", ") }
