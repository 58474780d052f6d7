package inventory

import (
	"cmp"
	"strings"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/csr"
)

// credential returns the agent's condition for the registration; nil if it has not
// reported yet.
func (r *Registration) credential(obj *addonv1beta1.ManagedClusterAddOn) *metav1.Condition {
	issued := TokenCondition(obj.Status.Conditions)
	certificate := apimeta.FindStatusCondition(obj.Status.Conditions, names.ConditionCertificateRotated)
	switch {
	case r.Driver == string(driver.Token):
		return issued
	case r.Driver != "":
		return r.own(certificate, obj.Status.Registrations)
	}
	// An agent that can declare no driver says why in the condition of the one
	// that it is configured to use.
	for _, c := range []*metav1.Condition{issued, certificate} {
		if c != nil && c.Status == metav1.ConditionFalse {
			return c
		}
	}
	return nil
}

// own returns what a condition says about this registration, where it sums up
// several as "<label>: <message>; ...". In one that is False only those are
// named that are not well.
func (r *Registration) own(c *metav1.Condition, all []addonv1beta1.RegistrationConfig) *metav1.Condition {
	if c == nil {
		return nil
	}
	mine, found := driver.SummaryPart(c.Message, r.Label())
	if found {
		out := c.DeepCopy()
		out.Message = mine
		return out
	}
	for _, other := range all {
		label := string(other.Type)
		if other.CustomSigner != nil {
			label = other.CustomSigner.SignerName
		}
		if _, found := driver.SummaryPart(c.Message, label); found {
			return &metav1.Condition{Type: c.Type, Status: metav1.ConditionTrue, LastTransitionTime: c.LastTransitionTime}
		}
	}
	return c
}

// TokenCondition returns the condition about an add-on's token. Both names of
// it are in use, and an agent of another release may have left the one behind
// that it does not write; the one that was moved last is meant.
func TokenCondition(conditions []metav1.Condition) *metav1.Condition {
	ours := apimeta.FindStatusCondition(conditions, names.ConditionAddOnTokenRefreshed)
	theirs := apimeta.FindStatusCondition(conditions, names.ConditionTokenRefreshed)
	switch {
	case ours == nil:
		return theirs
	case theirs == nil:
		return ours
	}
	last := cmp.Compare(ours.LastTransitionTime.Unix(), theirs.LastTransitionTime.Unix())
	if last == 0 {
		a, _ := expiryOf(ours)
		b, _ := expiryOf(theirs)
		last = a.Compare(b)
	}
	if last < 0 {
		return theirs
	}
	return ours
}

// dates fills in from when to when the credential is good.
func (r *Registration) dates(c *metav1.Condition, now time.Time) {
	if c == nil {
		return
	}
	if t, ok := expiryOf(c); ok {
		r.Expires = &t
	}
	if t, ok := refreshOf(c, now); ok {
		r.Refreshed = &t
	}
}

// expiryOf reads the end of a credential from its condition: "... expires at
// <RFC 3339>" of a token, "... from <start> to <end>" of a
// certificate.
func expiryOf(c *metav1.Condition) (time.Time, bool) {
	if c.Type == names.ConditionCertificateRotated {
		certificate, ok := csr.Reported([]metav1.Condition{*c})
		return certificate.NotAfter, ok
	}
	return timeAfter(c.Message, "expires at ")
}

// refreshOf reads when a credential was obtained. Of a token our agent says it
// in the time of the condition, which an agent of OCM moves only when a token
// follows a failure; ours is known by the condition that only it writes.
func refreshOf(c *metav1.Condition, now time.Time) (time.Time, bool) {
	if t, ok := timeAfter(c.Message, "starting from "); ok {
		return issueOf(t, c.LastTransitionTime.UTC(), now), true
	}
	if c.Type == names.ConditionAddOnTokenRefreshed && c.Status == metav1.ConditionTrue && !c.LastTransitionTime.IsZero() {
		return c.LastTransitionTime.UTC(), true
	}
	return time.Time{}, false
}

// standing is how far the credential that a condition reports is in its life at now. OCM's
// agent does not report when it obtained a token.
func standing(c *metav1.Condition, now time.Time) (credential.Standing, credential.Validity) {
	if c.Type == names.ConditionCertificateRotated {
		certificate, known := csr.Reported([]metav1.Condition{*c})
		if !known {
			return credential.Current, certificate
		}
		at, _ := credential.Certificates().Standing(certificate, now)
		return at, certificate
	}
	start, okStart := refreshOf(c, now)
	end, okEnd := expiryOf(c)
	token := credential.Validity{NotBefore: start, NotAfter: end}
	if !okStart || !okEnd {
		return credential.Current, token
	}
	at, _ := credential.Tokens().Standing(token, now)
	return at, token
}

// issueOf is when a certificate was issued that begins to be valid at start: later by
// credential.Backdating, unless the agent had it before that, or it is not that late yet.
func issueOf(start, reported, now time.Time) time.Time {
	issued := start.Add(credential.Backdating)
	for _, known := range []time.Time{reported, now} {
		if known.After(start) && known.Before(issued) {
			issued = known
		}
	}
	return issued
}

func timeAfter(message, words string) (time.Time, bool) {
	_, rest, ok := strings.Cut(message, words)
	if !ok {
		return time.Time{}, false
	}
	word, _, _ := strings.Cut(rest, " ")
	t, err := time.Parse(time.RFC3339, strings.TrimRight(word, ",.;)"))
	return t, err == nil
}
