package hub

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/excerpt"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/lookup"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// checkHub checks whether the hub can be installed. It is pure and returns
// every finding, not the first.
func checkHub(f install.Facts, h Values) []install.Finding {
	live := ""
	if f.Manager != nil {
		live = f.Manager.Spec.RegistrationImagePullSpec
	}
	findings := slices.Concat(install.CheckCommon(f, install.OldestHub, "a hub"), checkDrivers(f, h),
		h.CheckImage(f, h.TakeOver.Image(h.Workload, live), live))
	if f.Manager == nil && f.Klusterlet != nil {
		findings = append(findings, install.Finding{
			Check: install.CheckClusterKind, Severity: install.Fatal,
			Message: fmt.Sprintf("this cluster is a managed cluster already, joined as %q", f.Klusterlet.Spec.ClusterName),
			Try:     "choose the cluster that shall be the hub with --context; if it shall be both, add --skip-check=" + install.CheckClusterKind,
		})
	}
	if m := f.Manager; m != nil {
		findings = append(findings, install.CheckMode("hub", m.Spec.DeployOption.Mode)...)
		findings = append(findings, install.CheckDeletion(m, "ClusterManager", "wait until it is gone: kubectl get clustermanager "+m.Name)...)
	}
	return findings
}

// checkDrivers checks how clusters will register, with what the flags leave as it is.
func checkDrivers(f install.Facts, h Values) []install.Finding {
	wanted := h.clusterManager(f.Manager)
	var findings []install.Finding
	for _, e := range h.Catalog.Of(wanted) {
		if err := e.ValidateHub(e.Settings); err != nil {
			findings = append(findings, install.Finding{
				Check: install.CheckDriver, Severity: install.Fatal,
				Message: fmt.Sprintf("the hub cannot register clusters by the driver %s: %s", e.Type(), strings.ReplaceAll(err.Error(), "\n", "; ")),
				Try:     "set it right with the flags of init",
			})
		}
	}
	if len(findings) > 0 {
		return findings
	}
	for _, e := range h.Catalog.Of(f.Manager) {
		grants, clusters := e.Grants(), f.Granted[e.Type()]
		before := grants.Hub(e.Settings)
		if len(clusters) == 0 || h.registersAs(wanted, e, before) {
			continue
		}
		findings = append(findings, install.Finding{
			Check: install.CheckDriver, Severity: install.Fatal,
			Message: fmt.Sprintf("clusters have %s by the driver %s of the hub %s: %s; they would lose the hub, and their %s would stay",
				grants.Kind, e.Type(), before, excerpt.Of(strings.Join(clusters, ", "), install.ListedNames), grants.Kind),
			Try: "join them again with another driver, or deny or delete them, and then change the driver",
		})
	}
	return findings
}

// registersAs reports whether a ClusterManager enables a driver for which the hub is the
// same as before.
func (h Values) registersAs(wanted *operatorv1.ClusterManager, old driver.Enabled, before string) bool {
	return slices.ContainsFunc(h.Catalog.Of(wanted), func(e driver.Enabled) bool {
		return e.Type() == old.Type() && e.Grants().Hub(e.Settings) == before
	})
}

// granted returns the clusters to which the drivers of a live hub have granted something.
func granted(ctx context.Context, c client.Client, manager *operatorv1.ClusterManager, drivers driver.Catalog) (map[driver.AuthType][]string, error) {
	clusters := map[driver.AuthType][]string{}
	for _, e := range drivers.Of(manager) {
		if e.Grants().HubFlag == "" {
			continue
		}
		found, err := driver.GrantedClusters(ctx, c, names.HubNamespace, e.Type())
		if err != nil && !lookup.Absent(err) { // The operator looks too.
			return nil, err
		}
		clusters[e.Type()] = found
	}
	return clusters, nil
}
