package install

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/buildinfo"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/excerpt"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/origin"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// The oldest Kubernetes releases that hubs and managed clusters may run.
const (
	OldestHub     = "1.30.0" // ValidatingAdmissionPolicy
	OldestManaged = "1.22.0"
	// TestedManaged is the oldest that managed clusters were tested with.
	TestedManaged = "1.30.0"
)

// Untested says that a managed cluster is older than what was tested, or is "".
func Untested(v *version.Version) string {
	if v == nil || v.Major() == 0 || v.AtLeast(version.MustParseGeneric(TestedManaged)) {
		return ""
	}
	return fmt.Sprintf("the cluster runs Kubernetes %s; managed clusters were tested with %s and newer", v, strings.TrimSuffix(TestedManaged, ".0"))
}

// checkHub checks whether the hub can be installed. It is pure and returns
// every finding, not the first.
func checkHub(f Facts, h Hub) []Finding {
	live := ""
	if f.Manager != nil {
		live = f.Manager.Spec.RegistrationImagePullSpec
	}
	findings := slices.Concat(checkCommon(f, OldestHub, "a hub"), checkDrivers(f, h),
		h.checkImage(f, h.TakeOver.image(h.Workload, live), live))
	if f.Manager == nil && f.Klusterlet != nil {
		findings = append(findings, Finding{
			Check: CheckClusterKind, Severity: Fatal,
			Message: fmt.Sprintf("this cluster is a managed cluster already, joined as %q", f.Klusterlet.Spec.ClusterName),
			Try:     "choose the cluster that shall be the hub with --context; if it shall be both, add --skip-check=" + CheckClusterKind,
		})
	}
	if m := f.Manager; m != nil {
		findings = append(findings, checkMode("hub", m.Spec.DeployOption.Mode)...)
		findings = append(findings, checkDeletion(m, "ClusterManager", "wait until it is gone: kubectl get clustermanager "+m.Name)...)
	}
	return findings
}

// checkMode refuses what is installed in a mode that only its own tool knows.
func checkMode(what string, mode operatorv1.InstallMode) []Finding {
	if mode == "" || mode == operatorv1.InstallModeDefault {
		return nil
	}
	return []Finding{{
		Check: CheckExisting, Severity: Fatal,
		Message: fmt.Sprintf("the %s is installed in mode %s, which this release does not support", what, mode),
		Try:     "manage it with the tool that installed it",
	}}
}

func checkDeletion(live client.Object, kind, try string) []Finding {
	if live.GetDeletionTimestamp().IsZero() {
		return nil
	}
	return []Finding{{
		Check: CheckExisting, Severity: Fatal,
		Message: "the " + kind + " is being deleted: waits for " + strings.Join(live.GetFinalizers(), ", "), Try: try,
	}}
}

// checkDrivers checks how clusters will register, with what the flags leave as it is.
func checkDrivers(f Facts, h Hub) []Finding {
	wanted := h.clusterManager(f.Manager)
	var findings []Finding
	for _, e := range h.Catalog.Of(wanted) {
		if err := e.ValidateHub(e.Settings); err != nil {
			findings = append(findings, Finding{
				Check: CheckDriver, Severity: Fatal,
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
		findings = append(findings, Finding{
			Check: CheckDriver, Severity: Fatal,
			Message: fmt.Sprintf("clusters have %s by the driver %s of the hub %s: %s; they would lose the hub, and their %s would stay",
				grants.Kind, e.Type(), before, excerpt.Of(strings.Join(clusters, ", "), listedNames), grants.Kind),
			Try: "join them again with another driver, or deny or delete them, and then change the driver",
		})
	}
	return findings
}

// registersAs reports whether a ClusterManager enables a driver for which the hub is the
// same as before.
func (h Hub) registersAs(wanted *operatorv1.ClusterManager, old driver.Enabled, before string) bool {
	return slices.ContainsFunc(h.Catalog.Of(wanted), func(e driver.Enabled) bool {
		return e.Type() == old.Type() && e.Grants().Hub(e.Settings) == before
	})
}

// listedNames is how many characters of a list of names a finding has.
const listedNames = 200

// checkKlusterlet checks whether the agent can be installed.
func checkKlusterlet(f Facts, k Klusterlet) []Finding {
	live, image := f.Klusterlet, ""
	if live != nil {
		image = live.Spec.RegistrationImagePullSpec
	}
	findings := slices.Concat(checkCommon(f, OldestManaged, "a managed cluster"), checkTested(f),
		k.checkImage(f, k.TakeOver.image(k.Workload, image), image))
	if live == nil && f.Manager != nil {
		findings = append(findings, Finding{
			Check: CheckClusterKind, Severity: Fatal,
			Message: "this cluster is a hub",
			Try:     "choose the cluster that shall join with --context; if a hub shall join, add --skip-check=" + CheckClusterKind,
		})
	}
	if live == nil {
		if len(k.Bootstrap) == 0 && !f.Hidden {
			findings = append(findings, Finding{
				Check: CheckExisting, Severity: Fatal,
				Message: "the cluster has no Klusterlet to change", Try: "join it with a token first",
			})
		}
		return findings
	}
	if live.Spec.ClusterName != "" && k.ClusterName != "" && live.Spec.ClusterName != k.ClusterName {
		findings = append(findings, Finding{
			Check: CheckClusterName, Severity: Fatal,
			Message: fmt.Sprintf("this cluster has joined as %q already, it cannot be %q as well", live.Spec.ClusterName, k.ClusterName),
			Try:     "unjoin it first, or check that --context names the right cluster",
		})
	}
	findings = append(findings, checkMode("Klusterlet", k.TakeOver.mode(live.Spec.DeployOption.Mode))...)
	return append(findings, checkDeletion(live, "Klusterlet", "finish unjoin first")...)
}

// checkTested warns of a release that may work and was never run.
func checkTested(f Facts) []Finding {
	message := Untested(f.Kubernetes)
	if message == "" || f.Kubernetes.LessThan(version.MustParseGeneric(OldestManaged)) {
		return nil
	}
	return []Finding{{
		Check: CheckVersion, Severity: Warning, Message: message, Try: "upgrade the cluster when you can",
	}}
}

// checkOther refuses to install over what another product runs.
func checkOther(other *origin.Installation) []Finding {
	if other == nil {
		return nil
	}
	return []Finding{{
		Check: CheckOther, Severity: Fatal,
		Message: fmt.Sprintf("this cluster has %s. %s", other, other.Loss()),
		Try:     other.Try(),
	}}
}

func checkCommon(f Facts, oldest, role string) []Finding {
	findings := checkOther(f.Other)
	if f.Kubernetes != nil && f.Kubernetes.Major() == 0 {
		findings = append(findings, Finding{
			Check: CheckVersion, Severity: Warning,
			Message: fmt.Sprintf("the cluster does not say which Kubernetes it runs (%s); %s needs %s or newer", f.Kubernetes, role, strings.TrimSuffix(oldest, ".0")),
		})
	} else if f.Kubernetes != nil && f.Kubernetes.LessThan(version.MustParseGeneric(oldest)) {
		findings = append(findings, Finding{
			Check: CheckVersion, Severity: Fatal,
			Message: fmt.Sprintf("the cluster runs Kubernetes %s, %s needs %s or newer", f.Kubernetes, role, strings.TrimSuffix(oldest, ".0")),
			Try:     "upgrade the cluster, or use another one",
		})
	}
	if len(f.Missing) > 0 {
		texts := make([]string, len(f.Missing))
		for i, p := range f.Missing {
			texts[i] = p.String()
		}
		findings = append(findings, Finding{
			Check: CheckPermissions, Severity: Fatal,
			Message: "permissions are missing: " + strings.Join(texts, ", "),
			Try:     "use a context with cluster-admin rights",
		})
	}
	if newer(f.Release, buildinfo.Version) {
		findings = append(findings, Finding{
			Check: CheckDowngrade, Severity: Fatal,
			Message: fmt.Sprintf("the installed release %s is newer than this one, %s", f.Release, buildinfo.Version),
			Try:     "use the command of that release or a newer one",
		})
	}
	for _, namespace := range f.Terminating {
		findings = append(findings, Finding{
			Check: CheckTerminating, Severity: Fatal,
			Message: fmt.Sprintf("the namespace %s is being deleted", namespace),
			Try:     "wait until it is gone, then run the command again",
		})
	}
	return findings
}

// newer reports whether release a is newer than b. What is no version is not.
func newer(a, b string) bool {
	va, err := version.ParseGeneric(a)
	if err != nil {
		return false
	}
	vb, err := version.ParseGeneric(b)
	return err == nil && vb.LessThan(va)
}
