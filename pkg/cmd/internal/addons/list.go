package addons

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	certificatesv1 "k8s.io/api/certificates/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// Filter chooses add-ons; an empty list is all.
type Filter struct {
	Clusters []string
	Names    []string
	// Selector is what the labels must match; nil matches all.
	Selector labels.Selector

	// at is the only one; zero for any.
	at client.ObjectKey
}

// At chooses the add-on of a namespace and name among those that the filter chooses, and
// with the zero key all of them.
func (f Filter) At(key client.ObjectKey) Filter {
	f.at = key
	return f
}

func (f Filter) matches(obj *addonv1beta1.ManagedClusterAddOn) bool {
	return (len(f.Clusters) == 0 || slices.Contains(f.Clusters, obj.Namespace)) &&
		(len(f.Names) == 0 || slices.Contains(f.Names, obj.Name))
}

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

// Objects returns the add-ons that the filter chooses, by cluster and name.
func Objects(ctx context.Context, c client.Client, f Filter) ([]*addonv1beta1.ManagedClusterAddOn, error) {
	var (
		list    addonv1beta1.ManagedClusterAddOnList
		options []client.ListOption
	)
	switch {
	case f.at.Namespace != "":
		options = append(options, client.InNamespace(f.at.Namespace))
	case len(f.Clusters) == 1:
		options = append(options, client.InNamespace(f.Clusters[0]))
	}
	if f.Selector != nil {
		options = append(options, client.MatchingLabelsSelector{Selector: f.Selector})
	}
	if err := c.List(ctx, &list, append(options, cli.Named(f.at.Name))...); err != nil {
		return nil, fmt.Errorf("add-ons: %w", err)
	}
	var out []*addonv1beta1.ManagedClusterAddOn
	for i := range list.Items {
		if f.matches(&list.Items[i]) {
			out = append(out, &list.Items[i])
		}
	}
	slices.SortFunc(out, func(a, b *addonv1beta1.ManagedClusterAddOn) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return out, nil
}

// List describes the add-ons that the filter chooses.
func List(ctx context.Context, env cli.Env, c client.Client, f Filter) ([]AddOn, error) {
	objs, err := Objects(ctx, c, f)
	if err != nil {
		return nil, err
	}
	facts := Facts{Now: env.Clock.Now()}
	if len(objs) > 0 {
		// The list is worth having without the right to read requests.
		if facts.Requests, err = Requests(ctx, c); err != nil {
			env.Warn("requests are not shown: %v", err)
		}
	}
	out := make([]AddOn, len(objs))
	for i, obj := range objs {
		out[i] = Describe(obj, facts)
	}
	return out, nil
}

// Requests returns the CertificateSigningRequests of add-ons.
func Requests(ctx context.Context, c client.Client) ([]certificatesv1.CertificateSigningRequest, error) {
	var list certificatesv1.CertificateSigningRequestList
	if err := c.List(ctx, &list, client.HasLabels{names.LabelClusterName, names.LabelAddOnName}); err != nil {
		return nil, fmt.Errorf("requests of add-ons: %w", err)
	}
	return list.Items, nil
}

// Missing returns an error about the names of the filter that chose nothing.
func (f Filter) Missing(env cli.Env, found []AddOn) error {
	if len(f.Names) == 0 {
		return nil
	}
	for _, name := range f.Names {
		if slices.ContainsFunc(found, func(a AddOn) bool { return a.Name == name }) {
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
