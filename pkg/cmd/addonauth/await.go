package addonauth

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/inventory"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pause"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/agent"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// hubPatience bounds one request to a hub that this machine may not reach.
const hubPatience = 20 * time.Second

// await waits for the agent and then for its add-ons.
func (o *setOptions) await(ctx context.Context, runner agent.Runner, installed agent.Installed, want operatorv1.AddOnRegistrationDriver) error {
	if err := runner.AwaitFlags(ctx, installed, flagsMissing(want)); err != nil {
		return o.wait.TimedOut(err, "the agent to run with its new flags: "+err.Error(),
			"see what is wrong with: "+o.env.Command("check agent")+"; the Klusterlet is changed already")
	}
	if installed.Hub == nil {
		o.env.Say("The hub has given this cluster no credential yet; its add-ons register when it has.")
		return nil
	}
	config, release, err := runner.HubConnection(ctx, installed)
	if err != nil {
		return err
	}
	defer release()
	config.Timeout = hubPatience
	hub, err := cli.NewClient(o.env.Kube.Guard(config))
	if err != nil {
		return o.unasked(installed, err)
	}
	return o.awaitAddOns(ctx, installed, &registrations{
		spoke: runner.Client, hub: hub, cluster: installed.Cluster(), driver: cmp.Or(want.AuthType, string(driver.CSR)),
	})
}

func (o *setOptions) awaitAddOns(ctx context.Context, installed agent.Installed, w *registrations) error {
	open, err := poll(ctx, o.env, "Waiting for the add-ons to register", func(ctx context.Context) ([]inventory.Registration, error) {
		return w.look(ctx, o.env.Clock.Now())
	})
	switch {
	case err != nil && len(open) > 0 && ctx.Err() != nil:
		return o.wait.TimedOut(ctx.Err(), summary(open), "look at it on the hub with: "+o.env.Elsewhere("addon-auth status --cluster", w.cluster))
	case err != nil:
		return o.unasked(installed, err)
	case w.done == 0:
		o.env.Say("This cluster has no add-on with a kubeClient registration; those to come use driver %s.", w.driver)
		return nil
	}
	o.env.Say("%d add-on(s) registered with driver %s.", w.done, w.driver)
	return nil
}

// unasked says that the change was made but cannot be watched from here.
func (o *setOptions) unasked(installed agent.Installed, err error) error {
	explained := cli.Explain(err)
	return &cli.Explained{
		Problem: "the agent runs with the change, but the hub cannot be asked from here whether its add-ons have registered",
		Try:     "on the hub: " + o.env.Elsewhere("addon-auth status --cluster", installed.Cluster()),
		Code:    cli.ExitCode(explained), Cause: explained,
	}
}

// registrations looks at the add-ons of one cluster from both sides: what the
// hub knows, as the cluster's agent sees it, and what is in the Secrets.
type registrations struct {
	spoke, hub client.Client
	cluster    string
	driver     string
	// done counts the registrations that are there.
	done int
}

// look returns the registrations that are not there.
func (w *registrations) look(ctx context.Context, now time.Time) ([]inventory.Registration, error) {
	objs, err := inventory.Objects(ctx, w.hub, inventory.Filter{Clusters: []string{w.cluster}})
	if err != nil {
		return nil, err
	}
	var open []inventory.Registration
	w.done = 0
	for _, obj := range objs {
		for _, r := range inventory.Describe(obj, inventory.Facts{Now: now}).Registrations {
			if r.Type != string(addonv1beta1.KubeClient) || r.Reason == inventory.ReasonDeleting {
				continue
			}
			if r.Message, err = w.missing(ctx, r); err != nil {
				return nil, err
			}
			if r.Message != "" {
				open = append(open, r)
				continue
			}
			w.done++
		}
	}
	return open, nil
}

// missing says what a registration lacks.
func (w *registrations) missing(ctx context.Context, r inventory.Registration) (string, error) {
	switch {
	case r.Driver != w.driver:
		return "waits for the agent to declare driver " + w.driver, nil
	case r.State != inventory.Ready:
		return r.Message, nil
	case r.HostingCluster != "" && r.HostingCluster != w.cluster:
		return "", nil // Its Secret is on another cluster.
	}
	var secret corev1.Secret
	err := w.spoke.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: r.Secret}, &secret)
	switch {
	case apierrors.IsForbidden(err):
		return "", nil // The hub's word has to do.
	case apierrors.IsNotFound(err):
		return fmt.Sprintf("waits for Secret %s/%s", r.Namespace, r.Secret), nil
	case err != nil:
		return "", fmt.Errorf("secret %s/%s: %w", r.Namespace, r.Secret, err)
	}
	needed := names.KeyTLSCert
	if w.driver == string(driver.Token) {
		needed = names.KeyToken
	}
	if len(secret.Data[needed]) == 0 {
		return fmt.Sprintf("waits for %s in Secret %s/%s", needed, r.Namespace, r.Secret), nil
	}
	return "", nil
}

// interval is how often a waiting command looks again.
const interval = time.Second

// poll waits until look finds nothing open any more, and reports what it finds. A
// server that has answered once may be away for a while. The registrations that
// were open last are returned with an error.
func poll(ctx context.Context, env cli.Env, title string, look func(context.Context) ([]inventory.Registration, error)) (open []inventory.Registration, err error) {
	err = env.Progress().Step(ctx, title, func(ctx context.Context, say cli.Say) error {
		for answered := false; ; {
			found, err := look(ctx)
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case err != nil && !answered:
				return err
			case err != nil:
				say("trying again: %v", err)
			case len(found) == 0:
				open = nil
				return nil
			default:
				open, answered = found, true
				say("%s", summary(open))
			}
			if !pause.For(ctx, env.Clock, interval) {
				return ctx.Err()
			}
		}
	})
	return open, err
}

// summary says of some registrations what they wait for.
func summary(open []inventory.Registration) string {
	const shown = 3
	var lines []string
	for _, r := range open[:min(len(open), shown)] {
		lines = append(lines, fmt.Sprintf("%s/%s: %s", r.Cluster, r.AddOn, r.Message))
	}
	if more := len(open) - shown; more > 0 {
		lines = append(lines, fmt.Sprintf("%d more", more))
	}
	return strings.Join(lines, "; ")
}
