package addonauth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/inventory"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/addons"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pause"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

type rotateOptions struct {
	env     cli.Env
	changes *cli.Changes
	wait    cli.Wait
	selection
}

func newRotate(env cli.Env) *cobra.Command {
	o := &rotateOptions{env: env, changes: cli.NewChanges(env)}
	cmd := &cobra.Command{
		Use:   "rotate --addon ADDON",
		Short: "Rotate the credentials of add-ons, on the hub",
		Long: `Give add-ons new credentials now. Run it with the context of the hub.

It asks by an annotation of the ManagedClusterAddOn, which the cluster's agent
sees: credentials that were issued earlier are replaced, and stay in use until
the new ones are stored. An agent of another project does not know the
annotation; there, delete the add-on's Secret on the managed cluster.

A token that leaked stays valid until it expires. To make it useless at once,
delete the add-on's ServiceAccount in the cluster's namespace on the hub: it is
made again, and the agent obtains a token of the new one.`,
		Example: fmt.Sprintf(`  # On all clusters that have it, until the new credentials are there
  %[1]s addon-auth rotate --addon addon1 --wait

  # On one
  %[1]s addon-auth rotate --addon addon1 --cluster cluster1`, env.Name),
		RunE: func(cmd *cobra.Command, _ []string) error { return o.changes.End(o.run(cmd.Context())) },
	}
	o.addTo(env, cmd)
	o.wait.AddTo(cmd, "wait until the new credentials are there")
	o.changes.AddTo(cmd)
	env.Kube.AddDryRunFlag(cmd)
	return cmd
}

func (o *rotateOptions) run(ctx context.Context) error {
	filter, err := o.filter()
	if err != nil {
		return err
	}
	if len(filter.Names) == 0 {
		return cli.Usagef("--addon is missing")
	}
	ctx, cancel := o.wait.Context(ctx)
	defer cancel()
	c, config, err := o.env.Kube.Connect()
	if err != nil {
		return err
	}
	before, err := o.find(ctx, c, filter)
	if err != nil {
		return err
	}
	// Credentials end at full seconds. One that was issued a moment ago, and the one
	// that replaces it, could not be distinguished.
	if o.waits() && !pause.For(ctx, o.env.Clock, time.Second) {
		return ctx.Err()
	}
	now, err := o.hubTime(ctx, config)
	if err != nil {
		return err
	}
	for _, a := range before {
		if err := o.annotate(ctx, c, a, now); err != nil {
			return err
		}
	}
	if !o.waits() {
		return nil
	}
	return o.await(ctx, c, filter, before)
}

func (o *rotateOptions) waits() bool {
	return o.wait.Enabled && o.env.Kube.DryRun() == cli.DryRunNone
}

// find returns the add-ons; all that were named have to be there.
func (o *rotateOptions) find(ctx context.Context, c client.Client, filter inventory.Filter) ([]inventory.AddOn, error) {
	if err := addons.RequireHub(ctx, o.env, c); err != nil {
		return nil, err
	}
	found, err := inventory.List(ctx, c, filter, o.env.Now(), o.env.Warn)
	if err != nil {
		return nil, err
	}
	return found, addons.Missing(o.env, filter, found)
}

// hubTime is the next full second by the clock of the hub, which also dates the
// credentials that the annotation is compared with: in full seconds, and one
// that was issued in this second is to be replaced too.
func (o *rotateOptions) hubTime(ctx context.Context, config *rest.Config) (time.Time, error) {
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return time.Time{}, err
	}
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return time.Time{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.JoinPath("version").String(), http.NoBody)
	if err != nil {
		return time.Time{}, err
	}
	resp, err := httpClient.Do(req)
	if err != nil {
		return time.Time{}, err
	}
	_ = resp.Body.Close()
	date, err := http.ParseTime(resp.Header.Get("Date"))
	if err != nil {
		// A proxy took it away; our own clock is the next best.
		return o.env.Clock.Now().Add(time.Second).UTC(), nil //nolint:nilerr // see above
	}
	return date.Add(time.Second).UTC(), nil
}

// annotate asks for new credentials of an add-on, as of now.
func (o *rotateOptions) annotate(ctx context.Context, c client.Client, a inventory.AddOn, now time.Time) error {
	obj := a.Object.DeepCopy()
	base := client.MergeFrom(a.Object.DeepCopy())
	if obj.Annotations == nil {
		obj.Annotations = map[string]string{}
	}
	obj.Annotations[names.AnnotationRotate] = now.Format(time.RFC3339)
	err := c.Patch(ctx, obj, base, client.FieldOwner(install.FieldManager))
	if _, refused := errors.AsType[*cli.WriteRefusedError](err); err != nil && !refused {
		return fmt.Errorf("add-on %s on %s: %w", a.Name, a.Cluster, err)
	}
	return o.changes.Add(addons.RefOf(a), "rotation requested")
}

// await waits until every credential is another one than before.
func (o *rotateOptions) await(ctx context.Context, c client.Client, filter inventory.Filter, before []inventory.AddOn) error {
	old := map[string]inventory.Registration{}
	for _, a := range before {
		for _, r := range a.Registrations {
			old[key(r)] = r
		}
	}
	open, err := poll(ctx, o.env, "Waiting for new credentials", func(ctx context.Context) ([]inventory.Registration, error) {
		list, err := inventory.List(ctx, c, filter, o.env.Now(), o.env.Warn)
		var open []inventory.Registration
		for _, a := range list {
			for _, r := range a.Registrations {
				if !renewed(old[key(r)], r) {
					if r.OpenRequest != "" {
						r.Message = cmp.Or(r.Message, "request "+r.OpenRequest+" waits to be approved and signed")
					}
					r.Message = cmp.Or(r.Message, "waits for the cluster's agent to replace the credential")
					open = append(open, r)
				}
			}
		}
		return open, err
	})
	if err == nil || len(open) == 0 {
		return err
	}
	r := open[0]
	return o.wait.TimedOut(err, summary(open), fmt.Sprintf(
		"see what the agent says with: %s; if it does not know the annotation, delete Secret %s/%s on %s",
		o.env.Command("addon-auth status"), r.Namespace, r.Secret, cmp.Or(r.HostingCluster, r.Cluster)))
}

func key(r inventory.Registration) string {
	return strings.Join([]string{r.Cluster, r.AddOn, r.Type, r.SignerName}, " ")
}

// renewed reports whether a registration has a good credential that is not the
// old one. A shorter life can let the new one end earlier.
func renewed(old, now inventory.Registration) bool {
	if now.Expires == nil || now.State == inventory.Failing || now.State == inventory.Expired {
		return false
	}
	return old.Expires == nil || !now.Expires.Equal(*old.Expires)
}
