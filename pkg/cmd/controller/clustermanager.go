//go:build linux

package controller

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/buildinfo"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/operator/clustermanager"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/origin"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/drivers"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/servingcert"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/webhook/conversion"
)

// clusterManagerFlags are the flags of the hub's operator.
type clusterManagerFlags struct {
	operator       operatorFlags
	skipRemoveCRDs bool
}

func newClusterManager() *cobra.Command {
	return newRole(&clusterManagerFlags{operator: operatorFlags{common: newCommon()}}, &cobra.Command{
		Use:   "clustermanager",
		Short: "Run the operator that reconciles the ClusterManager",
	})
}

func (f *clusterManagerFlags) addFlags(cmd *cobra.Command) {
	f.operator.addFlags(cmd)
	cmd.Flags().BoolVar(&f.skipRemoveCRDs, "skip-remove-crds", false, "leave the CRDs, and with them all clusters, when the ClusterManager is deleted")
}

func (f *clusterManagerFlags) run(cmd *cobra.Command) error {
	mgr, selector, err := f.operator.manager("cluster-manager", clustermanager.CacheOptions)
	if err != nil {
		return err
	}
	err = refuseOthers(cmd.Context(), func(ctx context.Context) (*origin.Installation, error) {
		return origin.Hub(ctx, mgr.GetAPIReader(), names.OperatorNamespace)
	})
	if err != nil {
		return err
	}
	err = clustermanager.Setup(mgr, clustermanager.Config{
		Namespace:      operatorNamespace(),
		Image:          f.operator.image,
		Version:        buildinfo.Version,
		SyncLabels:     f.operator.syncLabels,
		SkipRemoveCRDs: f.skipRemoveCRDs,
		Replicas:       f.operator.replicas,
		ControlPlane:   selector,
		Drivers:        drivers.All(),
		Clock:          clock.RealClock{},
	})
	if err != nil {
		return err
	}
	for _, config := range []servingcert.Config{issuerConfig(), tokenAuthorizerCertificates()} {
		if err := servingcert.Setup(mgr, config); err != nil {
			return err
		}
	}
	return mgr.Start(cmd.Context())
}

// issuerConfig is how the operator issues what the hub's webhook serves with.
func issuerConfig() servingcert.Config {
	return servingcert.Config{
		Name:      "webhook.servingcert",
		Namespace: names.HubNamespace,
		Objects:   servingcert.WebhookObjects(),
		After:     &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: names.HubNamespace}},
		Rules:     servingcert.DefaultRules(names.AddOnWebhookService, names.HubNamespace),
		CRDs:      conversion.CRDs(),
		Clock:     clock.RealClock{},
	}
}

// proxySettle is how long proxies have to take over a new CA of the token
// authorizer before it signs: some mount the ConfigMap, some are configured by hand.
const proxySettle = 24 * time.Hour

// tokenAuthorizerCertificates is how the operator issues what the token
// authorizer serves with, as long as there is one.
func tokenAuthorizerCertificates() servingcert.Config {
	rules := servingcert.DefaultRules(names.TokenAuthorizer, names.HubNamespace)
	rules.Settle = proxySettle
	return servingcert.Config{
		Name:      "tokenauthorizer.servingcert",
		Namespace: names.HubNamespace,
		Objects: servingcert.Objects{
			Signer: names.TokenAuthorizerSignerSecret, Serving: names.TokenAuthorizerServingCertSecret,
			Bundle: names.TokenAuthorizerCAConfigMap,
		},
		After: &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: names.HubNamespace, Name: names.TokenAuthorizer}},
		Rules: rules,
		Clock: clock.RealClock{},
	}
}
