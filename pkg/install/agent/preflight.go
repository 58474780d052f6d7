package agent

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
)

// Untested says that a managed cluster is older than what was tested, or is "".
func Untested(v *version.Version) string {
	if v == nil || v.Major() == 0 || v.AtLeast(version.MustParseGeneric(install.TestedManaged)) {
		return ""
	}
	return fmt.Sprintf("the cluster runs Kubernetes %s; managed clusters were tested with %s and newer", v, strings.TrimSuffix(install.TestedManaged, ".0"))
}

// checkKlusterlet checks whether the agent can be installed.
func checkKlusterlet(f install.Facts, k Values) []install.Finding {
	live, image := f.Klusterlet, ""
	if live != nil {
		image = live.Spec.RegistrationImagePullSpec
	}
	findings := slices.Concat(install.CheckCommon(f, install.OldestManaged, "a managed cluster"), checkTested(f),
		k.CheckImage(f, k.TakeOver.Image(k.Workload, image), image))
	if live == nil && f.Manager != nil {
		findings = append(findings, install.Finding{
			Check: install.CheckClusterKind, Severity: install.Fatal,
			Message: "this cluster is a hub",
			Try:     "choose the cluster that shall join with --context; if a hub shall join, add --skip-check=" + install.CheckClusterKind,
		})
	}
	if live == nil {
		if len(k.Bootstrap) == 0 && !f.Hidden {
			findings = append(findings, install.Finding{
				Check: install.CheckExisting, Severity: install.Fatal,
				Message: "the cluster has no Klusterlet to change", Try: "join it with a token first",
			})
		}
		return findings
	}
	if live.Spec.ClusterName != "" && k.ClusterName != "" && live.Spec.ClusterName != k.ClusterName {
		findings = append(findings, install.Finding{
			Check: install.CheckClusterName, Severity: install.Fatal,
			Message: fmt.Sprintf("this cluster has joined as %q already, it cannot be %q as well", live.Spec.ClusterName, k.ClusterName),
			Try:     "unjoin it first, or check that --context names the right cluster",
		})
	}
	findings = append(findings, install.CheckMode("Klusterlet", k.TakeOver.Mode(live.Spec.DeployOption.Mode))...)
	return append(findings, install.CheckDeletion(live, "Klusterlet", "finish unjoin first")...)
}

// checkTested warns of a release that may work and was never run.
func checkTested(f install.Facts) []install.Finding {
	message := Untested(f.Kubernetes)
	if message == "" || f.Kubernetes.LessThan(version.MustParseGeneric(install.OldestManaged)) {
		return nil
	}
	return []install.Finding{{
		Check: install.CheckVersion, Severity: install.Warning, Message: message, Try: "upgrade the cluster when you can",
	}}
}

// checkName checks that the name is free on the hub, or this cluster's own.
func checkName(f install.Facts, k Values, onHub *clusterv1.ManagedCluster) []install.Finding {
	own := f.Klusterlet != nil && f.Klusterlet.Spec.ClusterName == k.ClusterName
	// A name that the hub does not accept is free: no cluster requested it yet, or the
	// cluster that had it has left.
	if onHub == nil || own || !onHub.Spec.HubAcceptsClient {
		return nil
	}
	if f.Hidden {
		return []install.Finding{{
			Check: install.CheckClusterName, Severity: install.Warning,
			Message: fmt.Sprintf("the hub knows a cluster %q already; whether it is this one is not known, because the Klusterlet of this cluster cannot be read", k.ClusterName),
			Try:     "run the command with permission to get klusterlets",
		}}
	}
	finding := install.Finding{
		Check: install.CheckClusterName, Severity: install.Warning,
		Message: fmt.Sprintf("the hub knows a cluster %q already", k.ClusterName),
		Try:     "if it was this cluster, continue; otherwise choose another name",
	}
	for _, c := range onHub.Status.Conditions {
		if c.Type == clusterv1.ManagedClusterConditionAvailable && c.Status == metav1.ConditionTrue {
			finding.Severity = install.Fatal
			finding.Message = fmt.Sprintf("the name %q is taken: another cluster is connected to the hub under it", k.ClusterName)
			finding.Try = "choose another name, or unjoin the other cluster first"
		}
	}
	return []install.Finding{finding}
}
