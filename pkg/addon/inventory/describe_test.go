package inventory_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/inventory"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

const (
	tokenUser = "system:serviceaccount:c1:c1-a1-agent"
	signer    = "example.com/signer"
)

func now() time.Time { return time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC) }

// addOn returns add-on a1 on c1.
func addOn(registrations []addonv1beta1.RegistrationConfig, conditions ...metav1.Condition) *addonv1beta1.ManagedClusterAddOn {
	a := &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "a1"}}
	a.Status.Registrations, a.Status.Conditions = registrations, conditions
	return a
}

func kube(driver, user string) addonv1beta1.RegistrationConfig {
	return addonv1beta1.RegistrationConfig{Type: addonv1beta1.KubeClient, KubeClient: &addonv1beta1.KubeClientConfig{
		Driver: driver, Subject: addonv1beta1.KubeClientSubject{BaseSubject: addonv1beta1.BaseSubject{User: user}},
	}}
}

func custom() addonv1beta1.RegistrationConfig {
	return addonv1beta1.RegistrationConfig{Type: addonv1beta1.CustomSigner, CustomSigner: &addonv1beta1.CustomSignerConfig{SignerName: signer}}
}

func list(r ...addonv1beta1.RegistrationConfig) []addonv1beta1.RegistrationConfig { return r }

func says(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
}

func ready() metav1.Condition {
	return says(names.ConditionTokenInfrastructureReady, metav1.ConditionTrue, names.ReasonTokenInfrastructureReady,
		names.TokenServiceAccount{Namespace: "c1", Name: "c1-a1-agent", UID: "1"}.Message())
}

func refreshed(message string) metav1.Condition {
	return says(names.ConditionAddOnTokenRefreshed, metav1.ConditionTrue, names.ReasonAddOnTokenRefreshed, message)
}

func rotated(message string) metav1.Condition {
	return says(names.ConditionCertificateRotated, metav1.ConditionTrue, names.ReasonCertificateUpdated, message)
}

const (
	goodToken       = "Addon token refreshed, expires at 2031-01-01T00:00:00Z"
	goodCertificate = "client certificate rotated starting from 2029-01-01T00:00:00Z to 2031-01-01T00:00:00Z"
)

// TestReasons shows that what is not ready has the reason of the first step
// that is missing.
func TestReasons(t *testing.T) {
	t.Parallel()
	deleted := addOn(list(kube("csr", "u")), rotated(goodCertificate))
	deleted.DeletionTimestamp = &metav1.Time{Time: now()}
	rotate := addOn(list(kube("token", tokenUser)), ready(), refreshed(goodToken))
	rotate.Status.Conditions[1].LastTransitionTime = metav1.NewTime(time.Date(2029, 12, 1, 0, 0, 0, 0, time.UTC))
	rotate.Annotations = map[string]string{names.AnnotationRotate: "2029-12-31T00:00:00Z"}
	overdue := addOn(list(kube("token", tokenUser)), ready(), refreshed("expires at 2030-03-01T00:00:00Z"))
	overdue.Status.Conditions[1].LastTransitionTime = metav1.NewTime(time.Date(2029, 3, 1, 0, 0, 0, 0, time.UTC))
	answered := rotate.DeepCopy()
	answered.Annotations[names.AnnotationRotate] = "2029-11-30T00:00:00Z"
	for name, tc := range map[string]struct {
		addOn  *addonv1beta1.ManagedClusterAddOn
		state  inventory.State
		reason string
	}{
		"nothing wanted yet":     {addOn(nil), inventory.Waiting, inventory.ReasonNoRegistration},
		"nothing wanted at all":  {addOn(nil, says("RegistrationApplied", "True", "NilRegistration", "")), inventory.Ready, ""},
		"the hub part failed":    {addOn(nil, says("RegistrationApplied", "False", "SetPermissionFailed", "no")), inventory.Failing, "SetPermissionFailed"},
		"no driver":              {addOn(list(kube("", ""))), inventory.Waiting, inventory.ReasonDriverNotDeclared},
		"driver refused":         {addOn(list(kube("", "")), says("AddonTokenRefreshed", "False", "RegistrationDriverUnavailable", "x")), inventory.Failing, "RegistrationDriverUnavailable"},
		"hosted":                 {addOn(list(custom()), says("TokenRefreshed", "False", "HostedElsewhere", "x")), inventory.Failing, "HostedElsewhere"},
		"no subject":             {addOn(list(kube("token", "someone"))), inventory.Waiting, inventory.ReasonSubjectNotDeclared},
		"no infrastructure":      {addOn(list(kube("token", tokenUser))), inventory.Waiting, inventory.ReasonInfrastructureMissing},
		"the agent says so":      {addOn(list(kube("token", tokenUser)), says("AddonTokenRefreshed", "False", "TokenInfrastructurePending", "x")), inventory.Waiting, "TokenInfrastructurePending"},
		"infrastructure failed":  {addOn(list(kube("token", tokenUser)), says("TokenInfrastructureReady", "False", "TokenInfrastructureApplyFailed", "x")), inventory.Failing, "TokenInfrastructureApplyFailed"},
		"no token":               {addOn(list(kube("token", tokenUser)), ready()), inventory.Waiting, inventory.ReasonTokenMissing},
		"token refused":          {addOn(list(kube("token", tokenUser)), ready(), says("TokenRefreshed", "False", "TokenCreationFailed", "x")), inventory.Failing, "TokenCreationFailed"},
		"token":                  {addOn(list(kube("token", tokenUser)), ready(), refreshed(goodToken)), inventory.Ready, ""},
		"token ended":            {addOn(list(kube("token", tokenUser)), ready(), refreshed("expires at 2029-01-01T00:00:00Z")), inventory.Expired, inventory.ReasonExpired},
		"rotation asked for":     {rotate, inventory.Waiting, inventory.ReasonRotationRequested},
		"rotation answered":      {answered, inventory.Ready, ""},
		"no certificate":         {addOn(list(kube("csr", "u"))), inventory.Waiting, inventory.ReasonCertificateMissing},
		"certificate":            {addOn(list(kube("csr", "u")), rotated(goodCertificate)), inventory.Ready, ""},
		"certificate ended":      {addOn(list(kube("csr", "u")), rotated("starting from 2028-01-01T00:00:00Z to 2029-01-01T00:00:00Z")), inventory.Expired, inventory.ReasonExpired},
		"certificate overdue":    {addOn(list(kube("csr", "u")), rotated("starting from 2029-03-01T00:00:00Z to 2030-03-01T00:00:00Z")), inventory.Overdue, inventory.ReasonNotRenewed},
		"certificate ending":     {addOn(list(kube("csr", "u")), rotated("starting from 2029-01-10T00:00:00Z to 2030-01-10T00:00:00Z")), inventory.Overdue, inventory.ReasonEnding},
		"token overdue":          {overdue, inventory.Overdue, inventory.ReasonNotRenewed},
		"request not approved":   {addOn(list(kube("csr", "u")), says("ClusterCertificateRotated", "False", "CSRRequested", "x")), inventory.Waiting, "CSRRequested"},
		"no permissions":         {addOn(list(kube("csr", "u")), rotated(goodCertificate), says("RegistrationApplied", "False", "SetPermissionFailed", "x")), inventory.Failing, "SetPermissionFailed"},
		"signer not granted":     {addOn(list(custom()), rotated(goodCertificate), says("CustomSignersGranted", "False", "SignerNotGranted", "x")), inventory.Failing, "SignerNotGranted"},
		"another's signer":       {addOn(list(kube("csr", "u")), rotated(goodCertificate), says("CustomSignersGranted", "False", "SignerNotGranted", "x")), inventory.Ready, ""},
		"deleted":                {deleted, inventory.Waiting, inventory.ReasonDeleting},
		"the old driver's words": {addOn(list(kube("token", tokenUser)), ready(), rotated(goodCertificate)), inventory.Waiting, inventory.ReasonTokenMissing},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := inventory.Describe(tc.addOn, inventory.Facts{Now: now()})
			if got.State != tc.state || got.Reason != tc.reason {
				t.Errorf("%s %s (%s), want %s %s", got.State, got.Reason, got.Message, tc.state, tc.reason)
			}
			if (got.Message == "") != (got.State == inventory.Ready) {
				t.Errorf("%s has message %q", got.State, got.Message)
			}
			if len(got.Rows()) == 0 {
				t.Error("no row")
			}
		})
	}
}

// TestOneConditionOfSeveralRegistrations shows that each registration is told
// its own part of the condition that they share.
func TestOneConditionOfSeveralRegistrations(t *testing.T) {
	t.Parallel()
	later := "client certificate rotated starting from 2029-06-01T00:00:00Z to 2032-01-01T00:00:00Z"
	both := list(kube("csr", "u"), custom())
	for name, tc := range map[string]struct {
		condition    metav1.Condition
		kube, custom string
	}{
		"both are well": {rotated("kubeClient: " + goodCertificate + "; " + signer + ": " + later), "Ready 2031", "Ready 2032"},
		"one is not":    {says("ClusterCertificateRotated", "False", "CSRDenied", signer+": denied; try again: later"), "Ready", "CSRDenied denied; try again: later"},
		"neither is":    {says("ClusterCertificateRotated", "False", "CSRDenied", "kubeClient: a; "+signer+": b"), "CSRDenied a", "CSRDenied b"},
		"an old agent":  {rotated(goodCertificate), "Ready 2031", "Ready 2031"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := inventory.Describe(addOn(both, tc.condition), inventory.Facts{Now: now()})
			var got []string
			for _, r := range a.Registrations {
				text := string(r.State)
				if r.State != inventory.Ready {
					text = r.Reason + " " + r.Message
				}
				if r.Expires != nil {
					text += r.Expires.Format(" 2006")
				}
				got = append(got, text)
			}
			if diff := cmp.Diff([]string{tc.kube, tc.custom}, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestRequestsNameTheActor(t *testing.T) {
	t.Parallel()
	request := certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{
		Name: "addon-c1-a1-x", Labels: map[string]string{names.LabelClusterName: "c1", names.LabelAddOnName: "a1"},
	}}
	request.Spec.SignerName = certificatesv1.KubeAPIServerClientSignerName
	approved := request.DeepCopy()
	approved.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved}}
	other := request.DeepCopy()
	other.Labels[names.LabelAddOnName] = "a2"
	for want, r := range map[string]certificatesv1.CertificateSigningRequest{
		inventory.ReasonRequestNotApproved: request,
		inventory.ReasonRequestNotIssued:   *approved,
		inventory.ReasonCertificateMissing: *other,
	} {
		got := inventory.Describe(addOn(list(kube("csr", "u"))), inventory.Facts{Now: now(), Requests: []certificatesv1.CertificateSigningRequest{r}})
		if got.Reason != want {
			t.Errorf("reason %s (%s), want %s", got.Reason, got.Message, want)
		}
	}
}

func TestTheLastTokenConditionCounts(t *testing.T) {
	t.Parallel()
	ours, theirs := refreshed("expires at 2031-01-01T00:00:00Z"), refreshed("expires at 2030-06-01T00:00:00Z")
	theirs.Type = names.ConditionTokenRefreshed
	theirs.LastTransitionTime = metav1.NewTime(now())
	if got := inventory.TokenCondition([]metav1.Condition{ours, theirs}); got.Type != theirs.Type {
		t.Errorf("got %s, but the other one was moved later", got.Type)
	}
	theirs.LastTransitionTime = metav1.Time{}
	if got := inventory.TokenCondition([]metav1.Condition{ours, theirs}); got.Type != ours.Type {
		t.Errorf("got %s, but the other one is about a newer token", got.Type)
	}
}

// TestRefreshed: a certificate that begins to be valid before it is issued was obtained when
// it was issued.
func TestRefreshed(t *testing.T) {
	t.Parallel()
	start := now().Add(-credential.Backdating)
	for name, tc := range map[string]struct{ start, reported, want time.Time }{
		"just now":                    {start: start, reported: now(), want: now()},
		"renewed just now":            {start: start, reported: now().Add(-time.Hour), want: now()},
		"an hour ago":                 {start: start.Add(-time.Hour), reported: now().Add(-time.Hour), want: now().Add(-time.Hour)},
		"a signer that backdates not": {start: now().Add(-time.Minute), reported: now().Add(-50 * time.Second), want: now().Add(-50 * time.Second)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			condition := rotated(fmt.Sprintf(names.MessageCertificateRotated, credential.Timestamp(tc.start), "2031-01-01T00:00:00Z"))
			condition.LastTransitionTime = metav1.NewTime(tc.reported)
			got := inventory.Describe(addOn(list(kube("csr", "u")), condition), inventory.Facts{Now: now()})
			if got.Refreshed == nil || !got.Refreshed.Equal(tc.want) {
				t.Errorf("got %v, want %v", got.Refreshed, tc.want)
			}
		})
	}
}
