package diagnose

import (
	"strings"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/finding"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/agent"
)

// DefaultLimit is the lifetime that join requests: checks report credentials with a longer
// one, such as the year that OCM and most signers give by default.
const DefaultLimit = Limit(agent.DefaultCertificateSeconds * time.Second)

// Limit is the longest lifetime of a credential that no check reports; 0 reports none.
type Limit time.Duration

// ExceededBy reports whether a lifetime is longer than the limit.
func (l Limit) ExceededBy(life time.Duration) bool {
	return l > 0 && life > time.Duration(l)+credential.Backdating
}

// Outcome warns about the credentials whose lifetimes are longer than the limit.
func (l Limit) Outcome(long []string, try string) finding.Outcome {
	if len(long) > 0 {
		return finding.Caution(try, "longer than %s: %s", credential.Lifetime(time.Duration(l)), strings.Join(long, "; "))
	}
	return finding.Good("")
}
