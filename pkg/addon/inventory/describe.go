package inventory

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/approval"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/csr"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/token"
)

// Reasons of what an add-on waits for, in addition to those of its conditions.
const (
	ReasonDeleting              = "Deleting"
	ReasonNoRegistration        = "NoRegistration"
	ReasonDriverNotDeclared     = "DriverNotDeclared"
	ReasonSubjectNotDeclared    = "SubjectNotDeclared"
	ReasonInfrastructureMissing = "TokenInfrastructureMissing"
	ReasonTokenMissing          = "TokenMissing"
	ReasonCertificateMissing    = "CertificateMissing"
	ReasonRequestNotApproved    = "RequestNotApproved"
	ReasonRequestNotIssued      = "RequestNotIssued"
	ReasonExpired               = "Expired"
	ReasonNotRenewed            = "NotRenewed"
	ReasonEnding                = "Ending"
	ReasonRotationRequested     = "RotationRequested"
)

// nilRegistration is the reason with which addon-framework says that an add-on
// needs no credential.
const nilRegistration = "NilRegistration"

// Facts are the inputs in addition to the add-on itself.
type Facts struct {
	Now time.Time
	// Requests are the open CSRs of add-ons, of any of them.
	Requests []certificatesv1.CertificateSigningRequest
}

// Describe sums up an add-on. It is pure.
func Describe(obj *addonv1beta1.ManagedClusterAddOn, facts Facts) AddOn {
	a := AddOn{
		Cluster: obj.Namespace, Name: obj.Name, Created: obj.CreationTimestamp.Time,
		State: Ready, Conditions: map[string]string{}, Registrations: []Registration{}, Object: obj,
	}
	for _, c := range obj.Status.Conditions {
		a.Conditions[c.Type] = string(c.Status)
	}
	a.Available = a.Conditions[addonv1beta1.ManagedClusterAddOnConditionAvailable]
	seen := map[string]bool{}
	for i := range obj.Status.Registrations {
		r := describe(obj, &obj.Status.Registrations[i], facts)
		if r.Type == string(addonv1beta1.KubeClient) && seen[r.Label()] {
			continue // only the first one is served
		}
		seen[r.Label()] = true
		a.Registrations = append(a.Registrations, r)
		if r.Type == string(addonv1beta1.KubeClient) {
			a.Driver, a.Expires, a.Refreshed = r.Driver, r.Expires, r.Refreshed
		}
		if a.State == Ready && r.State != Ready {
			a.State, a.Reason, a.Message = r.State, r.Reason, r.Message
		}
	}
	if len(a.Registrations) == 0 {
		r := unregistered(obj)
		a.State, a.Reason, a.Message = r.State, r.Reason, r.Message
	}
	return a
}

// Rows returns the registrations, and one row that says why for an add-on that
// has none.
func (a AddOn) Rows() []Registration {
	if len(a.Registrations) > 0 {
		return a.Registrations
	}
	r := unregistered(a.Object)
	r.Message = a.Message // It may say more.
	return []Registration{r}
}

func unregistered(obj *addonv1beta1.ManagedClusterAddOn) Registration {
	r := Registration{Cluster: obj.Namespace, AddOn: obj.Name, State: Ready}
	applied := apimeta.FindStatusCondition(obj.Status.Conditions, addonv1beta1.ManagedClusterAddOnRegistrationApplied)
	switch {
	case !obj.DeletionTimestamp.IsZero():
		r.wait(Waiting, ReasonDeleting, deleting(obj))
	case applied != nil && applied.Reason == nilRegistration:
		// It needs no credential.
	case applied != nil && applied.Status == metav1.ConditionFalse:
		r.wait(Failing, applied.Reason, sentence(applied.Message))
	default:
		r.wait(Waiting, ReasonNoRegistration, "waits for the add-on hub controller to set which credentials it needs (status.registrations is empty)")
	}
	return r
}

func describe(obj *addonv1beta1.ManagedClusterAddOn, config *addonv1beta1.RegistrationConfig, facts Facts) Registration {
	r := Registration{
		Cluster: obj.Namespace, AddOn: obj.Name, Type: string(config.Type), State: Ready,
		Namespace: InstallNamespace(obj), HostingCluster: obj.Annotations[names.AnnotationHostingCluster],
	}
	if config.Type == addonv1beta1.KubeClient {
		r.Secret = names.AddOnHubKubeconfigSecret(obj.Name)
		if k := config.KubeClient; k != nil {
			r.Driver, r.User, r.Groups = k.Driver, k.Subject.User, k.Subject.Groups
		}
	} else if s := config.CustomSigner; s != nil {
		r.Driver, r.SignerName, r.User, r.Groups = string(driver.CSR), s.SignerName, s.Subject.User, s.Subject.Groups
		r.Secret = names.AddOnSignerSecret(obj.Name, s.SignerName)
	}
	reported := r.credential(obj)
	r.dates(reported, facts.Now)
	open := openRequest(&r, facts.Requests)
	if open != nil {
		r.OpenRequest = open.Name
	}
	evaluate(&r, obj, reported, facts.Now, open)
	return r
}

// evaluate says what a registration waits for: the first step that is not done, in
// the order in which they have to happen. Where the agent says it, its words
// are taken.
func evaluate(r *Registration, obj *addonv1beta1.ManagedClusterAddOn, reported *metav1.Condition, now time.Time, open *certificatesv1.CertificateSigningRequest) {
	switch {
	case blocked(r, obj):
	case r.Expires != nil && !now.Before(*r.Expires):
		r.wait(Expired, ReasonExpired, "expired at "+credential.Timestamp(*r.Expires)+"; the cluster's agent has not renewed it")
	case reported != nil && reported.Status != metav1.ConditionTrue:
		r.wait(stateOf(reported.Reason), reported.Reason, sentence(reported.Message))
	case r.Driver == "":
		r.wait(Waiting, ReasonDriverNotDeclared, "waits for the cluster's agent to declare how it authenticates")
	case r.Driver == string(driver.Token) && !infrastructure(r, obj):
	case reported == nil:
		missing(r, open)
	default:
		present(r, obj, reported, now)
	}
}

// blocked reports whether the add-on gets no credential for a reason that its agent cannot
// remove.
func blocked(r *Registration, obj *addonv1beta1.ManagedClusterAddOn) bool {
	elsewhere, granted := hostedElsewhere(obj), apimeta.FindStatusCondition(obj.Status.Conditions, names.ConditionCustomSignersGranted)
	switch {
	case !obj.DeletionTimestamp.IsZero():
		r.wait(Waiting, ReasonDeleting, deleting(obj))
	case elsewhere != nil:
		r.wait(Failing, elsewhere.Reason, sentence(elsewhere.Message))
	case r.SignerName != "" && granted != nil && granted.Status == metav1.ConditionFalse:
		r.wait(Failing, granted.Reason, sentence(granted.Message))
	default:
		return false
	}
	return true
}

// present says what a registration waits for that has a credential.
func present(r *Registration, obj *addonv1beta1.ManagedClusterAddOn, reported *metav1.Condition, now time.Time) {
	if !rotating(r, obj) && !unpermitted(r, obj) {
		late(r, reported, now)
	}
}

// late says so when a credential should have been renewed.
func late(r *Registration, reported *metav1.Condition, now time.Time) {
	at, validity := standing(reported, now)
	switch at {
	case credential.Overdue:
		r.wait(Overdue, ReasonNotRenewed, "the cluster's agent should have renewed it; it expires at "+credential.Timestamp(validity.NotAfter))
	case credential.Ending:
		r.wait(Overdue, ReasonEnding, "the cluster's agent does not renew it; it expires at "+credential.Timestamp(validity.NotAfter))
	case credential.Current, credential.Ended:
	}
}

// stateOf distinguishes reasons that wait for another actor from failures.
func stateOf(reason string) State {
	switch reason {
	case token.ReasonPending, token.ReasonRecreated, token.ReasonThrottled, csr.ReasonRequested, csr.ReasonApproved,
		names.ReasonAddOnDeclared, names.ReasonInstallNamespaceMissing, names.ReasonSecretTaken, names.ReasonWaitingForSubject, names.ReasonClusterNotAccepted:
		return Waiting
	}
	return Failing
}

// hostedElsewhere returns what the agent says of an add-on whose agent runs on
// another cluster.
func hostedElsewhere(obj *addonv1beta1.ManagedClusterAddOn) *metav1.Condition {
	for i := range obj.Status.Conditions {
		if c := &obj.Status.Conditions[i]; c.Reason == names.ReasonHostedElsewhere {
			return c
		}
	}
	return nil
}

// unpermitted reports whether the add-on hub controller could not grant what it wants.
func unpermitted(r *Registration, obj *addonv1beta1.ManagedClusterAddOn) bool {
	applied := apimeta.FindStatusCondition(obj.Status.Conditions, addonv1beta1.ManagedClusterAddOnRegistrationApplied)
	if applied == nil || applied.Status != metav1.ConditionFalse {
		return false
	}
	r.wait(Failing, applied.Reason, "has a credential, but no permissions: "+sentence(applied.Message))
	return true
}

// infrastructure reports whether the hub has made what a token is issued for.
func infrastructure(r *Registration, obj *addonv1beta1.ManagedClusterAddOn) bool {
	ready := apimeta.FindStatusCondition(obj.Status.Conditions, names.ConditionTokenInfrastructureReady)
	namespace, name, isAccount := names.ParseServiceAccountUser(r.User)
	switch {
	case !isAccount:
		r.wait(Waiting, ReasonSubjectNotDeclared, "waits for the cluster's agent to declare its ServiceAccount as the subject")
	case ready == nil:
		r.wait(Waiting, ReasonInfrastructureMissing, "waits for the hub's addon-manager to make the ServiceAccount "+namespace+"/"+name)
	case ready.Status != metav1.ConditionTrue:
		r.wait(stateOf(ready.Reason), ready.Reason, sentence(ready.Message))
	default:
		return true
	}
	return false
}

// missing says who has to act for a first credential.
func missing(r *Registration, open *certificatesv1.CertificateSigningRequest) {
	switch {
	case r.Driver == string(driver.Token):
		r.wait(Waiting, ReasonTokenMissing, "waits for the cluster's agent to obtain a token")
	case open == nil:
		r.wait(Waiting, ReasonCertificateMissing, "waits for the cluster's agent to ask for a certificate")
	case approval.StateOf(open) == approval.Pending:
		r.wait(Waiting, ReasonRequestNotApproved, fmt.Sprintf("request %s waits to be approved by the add-on hub controller", open.Name))
	default:
		r.wait(Waiting, ReasonRequestNotIssued, fmt.Sprintf("request %s is approved, but signer %s issues no certificate", open.Name, open.Spec.SignerName))
	}
}

// openRequest returns the newest CSR of a registration that has
// brought nothing yet.
func openRequest(r *Registration, requests []certificatesv1.CertificateSigningRequest) *certificatesv1.CertificateSigningRequest {
	signer := cmp.Or(r.SignerName, certificatesv1.KubeAPIServerClientSignerName)
	var open *certificatesv1.CertificateSigningRequest
	for i := range requests {
		request := &requests[i]
		if r.Driver != string(driver.CSR) || request.Spec.SignerName != signer ||
			request.Labels[names.LabelClusterName] != r.Cluster || request.Labels[names.LabelAddOnName] != r.AddOn {
			continue
		}
		state := approval.StateOf(request)
		newer := open == nil || open.CreationTimestamp.Before(&request.CreationTimestamp)
		if newer && (state == approval.Pending || state == approval.Approved) {
			open = request
		}
	}
	return open
}

// rotating reports whether a requested rotation is still pending. A client requests it
// for the next full second, so a token of the current second may be the result.
func rotating(r *Registration, obj *addonv1beta1.ManagedClusterAddOn) bool {
	asked, err := time.Parse(time.RFC3339, obj.Annotations[names.AnnotationRotate])
	if err != nil || r.Refreshed == nil || r.Driver != string(driver.Token) || !r.Refreshed.Add(time.Second).Before(asked) {
		return false
	}
	r.wait(Waiting, ReasonRotationRequested, "waits for the cluster's agent to replace the credential, as was asked for at "+credential.Timestamp(asked))
	return true
}

func deleting(obj *addonv1beta1.ManagedClusterAddOn) string {
	if len(obj.Finalizers) == 0 {
		return "is being deleted"
	}
	return "is being deleted: waits for " + strings.Join(obj.Finalizers, ", ")
}

// sentence puts a condition's message into one line.
func sentence(message string) string {
	return strings.TrimSpace(strings.ReplaceAll(message, "\n", "; "))
}
