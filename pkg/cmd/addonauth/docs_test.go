package addonauth_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/inventory"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/docs"
)

// TestEveryReasonIsExplained keeps the troubleshooting page complete.
func TestEveryReasonIsExplained(t *testing.T) {
	t.Parallel()
	page := docs.Page(t, "guides/addons.md")
	reasons := slices.Concat(
		docs.Matches(t, `Reason[A-Z]\w*\s+= "([A-Z]\w+)"`,
			"pkg/names/addon.go", "pkg/registration/driver/csr", "pkg/registration/driver/token", "pkg/registration/agent/addon", "pkg/addon"),
		[]string{
			inventory.ReasonNoRegistration, inventory.ReasonDriverNotDeclared, inventory.ReasonSubjectNotDeclared,
			inventory.ReasonInfrastructureMissing, inventory.ReasonTokenMissing, inventory.ReasonCertificateMissing,
			inventory.ReasonRequestNotApproved, inventory.ReasonRequestNotIssued, inventory.ReasonExpired, inventory.ReasonRotationRequested,
		})
	for _, reason := range reasons {
		if !strings.Contains(page, "`"+reason+"`") {
			t.Errorf("docs/guides/addons.md does not explain reason %s", reason)
		}
	}
}

// TestTheAlertsAreAboutMetricsThatExist keeps the sample of alert rules usable.
func TestTheAlertsAreAboutMetricsThatExist(t *testing.T) {
	t.Parallel()
	metrics := docs.Matches(t, `"(ocm_[a-z_]+)"`, "pkg")
	docs.CheckAlerts(t, "reference/alerts/addons.yaml", metrics, "summary")
	page := docs.Page(t, "guides/addons.md")
	for _, name := range metrics {
		if strings.HasPrefix(name, "ocm_addon_") && !strings.Contains(page, "`"+name+"`") {
			t.Errorf("docs/guides/addons.md does not tell of metric %s", name)
		}
	}
}
