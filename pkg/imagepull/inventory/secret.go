package inventory

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/internal/content"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/internal/request"
)

// States of pull secrets that need nothing.
const (
	StateValid = "Valid"
	// StateLegacy is the state of pull secrets that OpenShift made from a token that
	// never expires.
	StateLegacy = "Legacy"
)

// PullSecret is one pull secret. It is part of the stable schema of lists.
type PullSecret struct {
	Namespace string `json:"namespace"`
	// Name is the name of the Secret.
	Name           string `json:"name"`
	ServiceAccount string `json:"serviceAccount"`
	// Hosts are the registries that it has tokens for.
	Hosts []string `json:"hosts,omitempty"`
	// Audiences, Usernames and KeyIDs are taken from its tokens.
	Audiences []string `json:"audiences,omitempty"`
	Usernames []string `json:"usernames,omitempty"`
	KeyIDs    []string `json:"keyIDs,omitempty"`
	// Issued is when the last of its tokens was, and Expires when the first does.
	Issued  *time.Time `json:"issued,omitempty"`
	Expires *time.Time `json:"expires,omitempty"`
	// State is StateValid, StateLegacy, or the reason why its tokens are to be replaced, which
	// Message explains.
	State   string `json:"state"`
	Message string `json:"message,omitempty"`
	// Usable says that pulls with it can succeed.
	Usable bool `json:"usable"`
	// Listed says that its ServiceAccount lists it in imagePullSecrets.
	Listed bool `json:"listed"`
	// Pods is how many Pods name it.
	Pods int `json:"pods"`
}

// pullSecret looks into a Secret.
func pullSecret(secret *corev1.Secret, account metav1.OwnerReference, now time.Time) PullSecret {
	s := content.Of(secret)
	p := PullSecret{
		Namespace: secret.Namespace, Name: secret.Name, ServiceAccount: account.Name,
		Hosts: s.Hosts(), State: StateValid,
	}
	for _, token := range s.Tokens {
		p.Audiences = append(p.Audiences, token.Audiences...)
		p.Usernames = append(p.Usernames, token.Username)
		p.KeyIDs = append(p.KeyIDs, token.KeyID)
		if issued := time.Unix(token.Issued, 0).UTC(); p.Issued == nil || p.Issued.Before(issued) {
			p.Issued = &issued
		}
	}
	for _, list := range []*[]string{&p.Audiences, &p.Usernames, &p.KeyIDs} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	facts := facts(s, secret, account)
	if end := facts.Validity.NotAfter; end.Unix() > 0 {
		p.Expires = new(end.UTC())
	}
	if need, due := credential.Due().Evaluate(facts, now); due {
		p.State, p.Message = string(need.Reason), need.Message
	}
	_, unusable := credential.Unusable().Evaluate(facts, now)
	p.Usable = !unusable
	return p
}

// legacy is a legacy pull secret. What is in it is not looked at.
func legacy(secret *corev1.Secret) PullSecret {
	return PullSecret{
		Namespace: secret.Namespace, Name: secret.Name, ServiceAccount: secret.Annotations[corev1.ServiceAccountNameKey],
		Hosts: content.Of(secret).Hosts(), State: StateLegacy, Usable: true,
		Message: "its token never expires; replace it with legacy-tokens migrate",
	}
}

// facts returns the input of the rules.
func facts(s content.Summary, secret *corev1.Secret, account metav1.OwnerReference) credential.Facts {
	f := credential.Facts{Validity: s.Validity()}
	f.RenewAt = credential.RenewAt(f.Validity, credential.PullSecrets(), string(secret.UID))
	switch {
	case s.Problem != "":
		f.Problem = fmt.Errorf("%w: %s", credential.ErrMalformed, s.Problem)
	case s.Missing():
		f.Problem = credential.ErrMissing
	}
	for _, token := range s.Tokens {
		if f.Problem == nil && (token.AccountUID != string(account.UID) || token.SecretUID != string(secret.UID)) {
			f.Problem = fmt.Errorf("%w: the token is of another ServiceAccount or bound to another Secret", credential.ErrWrongIdentity)
		}
	}
	if f.Problem == nil {
		f.Problem = request.Pending(secret, s)
	}
	return f
}
