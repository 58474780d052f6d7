package get

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/origin"
)

// component is the stable schema of one Deployment.
type component struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	Image     string `json:"image"`
	Ready     int32  `json:"ready"`
	Desired   int32  `json:"desired"`
}

// condition is the stable schema of one condition.
type condition struct {
	Type    string    `json:"type"`
	Status  string    `json:"status"`
	Reason  string    `json:"reason"`
	Message string    `json:"message"`
	Since   time.Time `json:"since"`
}

// info is the stable schema of an installation.
type info struct {
	Kind string `json:"-"`
	Name string `json:"name"`
	// Product is what runs where that is not this one.
	Product    string      `json:"product,omitempty"`
	Cluster    string      `json:"clusterName,omitempty"`
	Conditions []condition `json:"conditions"`
	Operator   *component  `json:"operator,omitempty"`
	Components []component `json:"components"`
	CRDs       []string    `json:"crds"`
}

func newHubInfo(env cli.Env) *cobra.Command {
	return newInfo(env, "hub-info", "Show what is installed on the hub", func(ctx context.Context, c client.Client) (info, error) {
		if err := fleet.RequireInit(ctx, env, c); err != nil {
			return info{}, err
		}
		var manager operatorv1.ClusterManager
		if err := c.Get(ctx, client.ObjectKey{Name: names.ClusterManagerName}, &manager); err != nil {
			return info{}, notInstalled(err, "ClusterManager", env.Command("init"))
		}
		i := info{Kind: "HubInfo", Name: manager.Name, Conditions: conditions(manager.Status.Conditions)}
		found, err := origin.Hub(ctx, c)
		if err != nil {
			return info{}, err
		}
		return i, i.fill(ctx, c, names.ClusterManagerOperator, manager.Status.RelatedResources, found)
	})
}

func newKlusterletInfo(env cli.Env) *cobra.Command {
	return newInfo(env, "klusterlet-info", "Show what is installed on the managed cluster", func(ctx context.Context, c client.Client) (info, error) {
		if err := fleet.RequireManaged(env, c); err != nil {
			return info{}, err
		}
		var klusterlet operatorv1.Klusterlet
		if err := c.Get(ctx, client.ObjectKey{Name: names.KlusterletName}, &klusterlet); err != nil {
			return info{}, notInstalled(err, "Klusterlet", env.Command("join"))
		}
		i := info{
			Kind: "KlusterletInfo", Name: klusterlet.Name, Cluster: klusterlet.Spec.ClusterName,
			Conditions: conditions(klusterlet.Status.Conditions),
		}
		found, err := origin.Agent(ctx, c)
		if err != nil {
			return info{}, err
		}
		return i, i.fill(ctx, c, names.KlusterletOperator, klusterlet.Status.RelatedResources, found)
	})
}

func newInfo(env cli.Env, name, short string, read func(context.Context, client.Client) (info, error)) *cobra.Command {
	out := cli.NewOutput(cli.Text)
	cmd := &cobra.Command{
		Use: name, Short: short,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := env.Kube.Client()
			if err != nil {
				return err
			}
			i, err := read(cmd.Context(), c)
			if err != nil {
				return err
			}
			if out.Machine() {
				return out.Object(env.Out, cli.Header{Kind: i.Kind, Metadata: &cli.Metadata{Name: i.Name}}, i)
			}
			return i.print(env)
		},
	}
	out.AddTo(cmd)
	return cmd
}

func notInstalled(err error, kind, command string) error {
	if apierrors.IsNotFound(err) {
		return cli.NotFoundf("run "+command+" first, or choose another cluster with --context", "the cluster has no %s", kind)
	}
	return err
}

func conditions(list []metav1.Condition) []condition {
	out := make([]condition, len(list))
	for i, c := range list {
		out[i] = condition{c.Type, string(c.Status), c.Reason, c.Message, c.LastTransitionTime.Time}
	}
	return out
}

// fill reads the Deployments and CRDs that an operator made, and what another product runs.
func (i *info) fill(ctx context.Context, c client.Client, operator string, related []operatorv1.RelatedResourceMeta, other *origin.Installation) error {
	i.Product = other.Product()
	deployed, err := deployment(ctx, c, names.OperatorNamespace, operator)
	if err != nil {
		return err
	}
	i.Operator = deployed
	i.Components = []component{}
	for _, r := range deployments(related, other) {
		deployed, err := deployment(ctx, c, r.Namespace, r.Name)
		if err != nil {
			return err
		}
		if deployed != nil {
			i.Components = append(i.Components, *deployed)
		}
	}
	return i.fillCRDs(ctx, c)
}

// deployments are those in the status of an operator's resource, and those of another product.
func deployments(related []operatorv1.RelatedResourceMeta, other *origin.Installation) []client.ObjectKey {
	var keys []client.ObjectKey
	for _, r := range related {
		if r.Resource == "deployments" {
			keys = append(keys, client.ObjectKey{Namespace: r.Namespace, Name: r.Name})
		}
	}
	if other == nil {
		return keys
	}
	for _, d := range other.Components {
		if key := (client.ObjectKey{Namespace: d.Namespace, Name: d.Name}); !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

func (i *info) fillCRDs(ctx context.Context, c client.Client) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinitionList"))
	if err := c.List(ctx, list); err != nil {
		return fmt.Errorf("CRDs: %w", err)
	}
	i.CRDs = []string{}
	for _, crd := range list.Items {
		if strings.HasSuffix(crd.Name, ".open-cluster-management.io") {
			i.CRDs = append(i.CRDs, crd.Name)
		}
	}
	slices.Sort(i.CRDs)
	return nil
}

func deployment(ctx context.Context, c client.Client, namespace, name string) (*component, error) {
	var d appsv1.Deployment
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &d); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("deployment %s: %w", name, err)
	}
	out := &component{Name: name, Namespace: namespace, Ready: d.Status.AvailableReplicas, Desired: 1}
	if d.Spec.Replicas != nil {
		out.Desired = *d.Spec.Replicas
	}
	if containers := d.Spec.Template.Spec.Containers; len(containers) > 0 {
		out.Image = containers[0].Image
	}
	return out, nil
}

func (i info) print(env cli.Env) error {
	var b strings.Builder
	_, _ = fmt.Fprintf(&b, "%s: %s\n", strings.TrimSuffix(i.Kind, "Info"), i.Name)
	if i.Product != "" {
		_, _ = fmt.Fprintf(&b, "Product: %s\n", i.Product)
	}
	if i.Cluster != "" {
		_, _ = fmt.Fprintf(&b, "Cluster name: %s\n", i.Cluster)
	}
	b.WriteString("Registration Operator:\n")
	if i.Operator == nil {
		b.WriteString("  <uninstalled>\n")
	} else {
		_, _ = fmt.Fprintf(&b, "  (%d/%d) %s\n", i.Operator.Ready, i.Operator.Desired, i.Operator.Image)
	}
	b.WriteString("Components:\n")
	if len(i.Components) == 0 {
		b.WriteString("  <uninstalled>\n")
	}
	for _, c := range i.Components {
		_, _ = fmt.Fprintf(&b, "  (%d/%d) %s/%s\n", c.Ready, c.Desired, c.Namespace, c.Name)
	}
	b.WriteString("Conditions:\n")
	for _, c := range i.Conditions {
		_, _ = fmt.Fprintf(&b, "  %s=%s %s: %s\n", c.Type, c.Status, c.Reason, strings.ReplaceAll(c.Message, "\n", "; "))
	}
	b.WriteString("CRDs:\n")
	for _, name := range i.CRDs {
		_, _ = fmt.Fprintf(&b, "  %s\n", name)
	}
	_, err := fmt.Fprint(env.Out, b.String())
	return err
}
