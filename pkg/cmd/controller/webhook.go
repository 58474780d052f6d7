//go:build linux

package controller

import (
	"cmp"
	"errors"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/servingcert"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/webhook/conversion"
)

// drain is how long the webhook serves on after the signal to stop: a Service takes a moment
// to forget a Pod, longer on a busy control plane, and a request that is sent to a Pod that
// is gone fails. A Pod has 30 seconds to end.
const drain = 10 * time.Second

// webhookFlags are the flags of the webhook that converts add-ons.
type webhookFlags struct {
	common    common
	port      int
	namespace string
}

func newWebhook() *cobra.Command {
	flags := &webhookFlags{common: newCommon()}
	flags.common.leaderElect = false // Every replica serves.
	return newRole(flags, &cobra.Command{
		Use:   "webhook",
		Short: "Convert add-ons between the versions of their API",
	})
}

func (f *webhookFlags) addFlags(cmd *cobra.Command) {
	f.common.addFlags(cmd)
	flags := cmd.Flags()
	flags.IntVar(&f.port, "webhook-port", names.AddOnWebhookPort, "port of the webhook")
	flags.StringVar(&f.namespace, "namespace", "", "namespace of the Secret with the serving certificate; empty means $POD_NAMESPACE")
}

func (f *webhookFlags) run(cmd *cobra.Command) error {
	if f.namespace = cmp.Or(f.namespace, os.Getenv("POD_NAMESPACE")); f.namespace == "" {
		return errors.New("the serving certificate is in a Secret: name its namespace with --namespace")
	}
	mgr, err := f.common.manager("addon-webhook", servingcert.CacheOptions(f.namespace))
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	holder := &servingcert.Holder{Clock: clock.RealClock{}, Log: klog.FromContext(ctx)}
	if err := holder.Watch(ctx, mgr.GetCache()); err != nil {
		return err
	}
	if err := f.serve(mgr, holder); err != nil {
		return err
	}
	klog.FromContext(ctx).Info("Starting the add-on webhook", "port", strconv.Itoa(f.port))
	return mgr.Start(ctx)
}

// serve adds the server to the manager. It is ready once it has a certificate.
func (f *webhookFlags) serve(mgr manager.Manager, holder *servingcert.Holder) error {
	handler, err := conversion.NewHandler(ctrl.Log.WithName("conversion"), metrics.Registry)
	if err != nil {
		return err
	}
	// In tests several share a process, of which the first is measured.
	if err := metrics.Registry.Register(holder.NewMetric()); err != nil && !errors.As(err, new(prometheus.AlreadyRegisteredError)) {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle(conversion.Path, handler)
	server := &servingcert.Server{
		Address: f.common.address(f.port), Handler: mux, Holder: holder, Drain: drain, Clock: clock.RealClock{},
	}
	if err := mgr.Add(server); err != nil {
		return err
	}
	return mgr.AddReadyzCheck("webhook", server.Check)
}
