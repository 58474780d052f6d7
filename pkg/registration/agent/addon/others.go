package addon

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

const (
	// otherRecheck is how often is looked whether another agent is gone.
	otherRecheck = 10 * time.Second
	// damageAfter is how often a credential may get lost in short order before
	// somebody is taken to destroy it all the time.
	damageAfter = 5
)

// yields reports whether a Secret is left as it is although it ought to be
// changed, and says why in it.state: it is another agent's, or what is put
// there does not stay.
func (r *Reconciler) yields(ctx context.Context, s *scope, it *item, h held, need credential.Need) (bool, error) {
	owner, err := r.keptBy(ctx, h.secret)
	if err != nil {
		return false, err
	}
	waiting, wait := driver.Waiting{Reason: names.ReasonSecretTaken}, otherRecheck
	switch {
	case owner != "":
		waiting.Message = fmt.Sprintf("Secret %s in namespace %s is kept by the agent of another hub, in namespace %s: install the add-on of one of the hubs in another namespace",
			it.secret.Name, it.secret.Namespace, owner)
	case lost(need):
		if wait = s.memory.contest([]string{lossOf(it)}, damageAfter, s.now); wait <= 0 {
			return false, nil
		}
		waiting.Message = fmt.Sprintf("the credential in Secret %s in namespace %s was lost %d times in short order: find out who changes the Secret", it.secret.Name, it.secret.Namespace, damageAfter)
	default:
		return false, nil
	}
	a := s.memory.attempt(it, s.now)
	it.state = state{validity: h.facts.Validity, usable: r.usable(s, h), waiting: waiting, failing: true}
	a.state, a.cause, a.woken, a.until = it.state, cause(s, it), r.memory.woken(s.memory), s.now.Add(wait)
	s.after(wait)
	r.warn(s, it, a)
	return true, nil
}

// lost reports whether a credential is needed because there is none of this
// registration, and not because one has come to its end.
func lost(need credential.Need) bool {
	switch need.Reason {
	case credential.Missing, credential.Malformed, credential.WrongIdentity:
		return true
	case credential.Expired, credential.NearExpiry, credential.SignerRetired, credential.ServersChanged, credential.RefreshRequested:
	}
	return false
}

// lossOf is what a lost credential is remembered by.
func lossOf(it *item) string { return "Secret " + it.secret.Name }

// keptBy is the namespace of another agent that keeps a Secret, empty if there
// is none or it is gone.
func (r *Reconciler) keptBy(ctx context.Context, secret *corev1.Secret) (string, error) {
	if secret == nil {
		return "", nil
	}
	owner := secret.Labels[names.LabelAddOnCredential]
	if owner == "" || owner == r.config.Namespace {
		return "", nil
	}
	there, err := r.namespaceExists(ctx, owner)
	if err != nil || !there {
		return "", err
	}
	return owner, nil
}
