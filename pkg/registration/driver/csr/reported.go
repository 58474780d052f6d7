package csr

import (
	"strings"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// Reported reads the validity of an agent's certificate from the condition
// ClusterCertificateRotated, which the agent keeps: "... from <start> to <end>". It is not
// known while the last attempt to renew it failed.
// See docs/reference/wire-contract.md.
func Reported(conditions []metav1.Condition) (credential.Validity, bool) {
	c := apimeta.FindStatusCondition(conditions, names.ConditionCertificateRotated)
	if c == nil || c.Status != metav1.ConditionTrue {
		return credential.Validity{}, false
	}
	_, dates, _ := strings.Cut(c.Message, " from ")
	start, end, found := strings.Cut(dates, " to ")
	if !found {
		return credential.Validity{}, false
	}
	notBefore, okStart := parseTime(start)
	notAfter, okEnd := parseTime(end)
	return credential.Validity{NotBefore: notBefore, NotAfter: notAfter}, okStart && okEnd
}

// parseTime reads a time as our agent writes it, or as OCM's does.
func parseTime(at string) (time.Time, bool) {
	for _, layout := range []string{time.RFC3339, "2006-01-02 15:04:05 -0700 MST"} {
		if t, err := time.Parse(layout, strings.TrimSpace(at)); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}
