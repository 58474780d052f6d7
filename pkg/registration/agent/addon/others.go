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
	// otherRecheck is how often the existence of another agent is checked.
	otherRecheck = 10 * time.Second
	// damageAfter is how often a credential is restored before another controller is
	// assumed to overwrite it.
	damageAfter = 5
)

// yields reports whether a Secret that needs a change is not written, and sets
// it.state: it belongs to another agent, or another controller keeps overwriting it.
func (r *Reconciler) yields(ctx context.Context, s *scope, it *item, h stored, need credential.Need) (bool, error) {
	owner, err := r.otherOwner(ctx, h.secret)
	if err != nil {
		return false, err
	}
	waiting, wait := driver.Waiting{Reason: names.ReasonSecretTaken}, otherRecheck
	switch {
	case owner != "":
		waiting.Message = fmt.Sprintf("Secret %s in namespace %s belongs to the agent of another hub, in namespace %s; install the add-on of one of the hubs in another namespace",
			it.secret.Name, it.secret.Namespace, owner)
	case lost(need):
		if wait = s.memory.conflictDelay([]string{lossOf(it)}, damageAfter, s.now); wait <= 0 {
			return false, nil
		}
		waiting.Message = fmt.Sprintf("Secret %s in namespace %s lost its credential %d times within a short time; check which controller changes it", it.secret.Name, it.secret.Namespace, damageAfter)
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

// lost reports whether a credential is needed because the Secret has none of this
// registration, and not because it is due for renewal.
func lost(need credential.Need) bool {
	switch need.Reason {
	case credential.Missing, credential.Malformed, credential.WrongIdentity:
		return true
	case credential.Expired, credential.NearExpiry, credential.SignerRetired, credential.ServersChanged, credential.RefreshRequested:
	}
	return false
}

// lossOf returns the key of a lost credential in memory.
func lossOf(it *item) string { return "Secret " + it.secret.Name }

// otherOwner returns the namespace of another agent that owns a Secret, empty if there
// is none or it is gone.
func (r *Reconciler) otherOwner(ctx context.Context, secret *corev1.Secret) (string, error) {
	if secret == nil {
		return "", nil
	}
	owner := secret.Labels[names.LabelAddOnCredential]
	if owner == "" || owner == r.config.Namespace {
		return "", nil
	}
	exists, err := r.namespaceExists(ctx, owner)
	if err != nil || !exists {
		return "", err
	}
	return owner, nil
}
