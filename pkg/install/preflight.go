package install

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/buildinfo"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/origin"
)

// The oldest Kubernetes releases that hubs and managed clusters may run.
const (
	OldestHub     = "1.30.0" // ValidatingAdmissionPolicy
	OldestManaged = "1.22.0"
	// TestedManaged is the oldest that managed clusters were tested with.
	TestedManaged = "1.30.0"
)

// CheckMode refuses what is installed in a mode that only its own tool knows.
func CheckMode(what string, mode operatorv1.InstallMode) []Finding {
	if mode == "" || mode == operatorv1.InstallModeDefault {
		return nil
	}
	return []Finding{{
		Check: CheckExisting, Severity: Fatal,
		Message: fmt.Sprintf("the %s is installed in mode %s, which this release does not support", what, mode),
		Try:     "manage it with the tool that installed it",
	}}
}

// CheckDeletion refuses to install over an object that is being deleted; try is the advice
// to the user.
func CheckDeletion(live client.Object, kind, try string) []Finding {
	if live.GetDeletionTimestamp().IsZero() {
		return nil
	}
	return []Finding{{
		Check: CheckExisting, Severity: Fatal,
		Message: "the " + kind + " is being deleted: waits for " + strings.Join(live.GetFinalizers(), ", "), Try: try,
	}}
}

// ListedNames is how many characters of a list of names a finding has.
const ListedNames = 200

// CheckForeign refuses to install over what another product runs.
func CheckForeign(other *origin.Installation) []Finding {
	if other == nil {
		return nil
	}
	return []Finding{{
		Check: CheckOther, Severity: Fatal,
		Message: fmt.Sprintf("this cluster has %s. %s", other, other.Loss()),
		Try:     other.Try(),
	}}
}

// CheckCommon checks what every installation depends on. oldest is the oldest Kubernetes
// release that role, such as "a hub", may run on.
func CheckCommon(f Facts, oldest, role string) []Finding {
	findings := CheckForeign(f.Other)
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
