package addon

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// reports returns whether the driver of the registration reports in a condition of
// this type.
func (it *item) reports(kind string) bool {
	return slices.Contains(it.driver.Report().Conditions, kind)
}

// setCredentialConditions sets the conditions of the drivers in use, one for all
// registrations of a driver, and removes those of earlier drivers.
func (r *Reconciler) setCredentialConditions(s *scope) {
	for _, kind := range names.CredentialConditions() {
		using := slices.DeleteFunc(slices.Clone(s.items), func(it *item) bool { return !it.reports(kind) })
		if len(using) == 0 {
			apimeta.RemoveStatusCondition(&s.want.Status.Conditions, kind)
			continue
		}
		if slices.ContainsFunc(using, func(it *item) bool { return it.state.fresh && !it.state.usable }) {
			continue
		}
		condition := summary(using)
		condition.Type = kind
		s.set(condition)
	}
}

// setSwitchConditions reports, together with the new driver, that an add-on that had
// tokens has no certificate for its kubeClient registration yet. The hub retains the
// token infrastructure until the condition is True, which it may have been for the
// add-on's other signers.
func (r *Reconciler) setSwitchConditions(s *scope) {
	if apimeta.FindStatusCondition(s.want.Status.Conditions, names.ConditionTokenInfrastructureReady) == nil {
		return
	}
	for _, it := range s.items {
		if it.signer != "" || it.reports(names.ConditionTokenRefreshed) {
			continue
		}
		for _, kind := range it.driver.Report().Conditions {
			s.set(metav1.Condition{
				Type: kind, Status: metav1.ConditionFalse, Reason: names.ReasonAddOnDeclared,
				Message: "waiting for the certificate of the kubeClient registration, which used a token before",
			})
		}
	}
}

// set sets a condition of the wanted status. A given transition time is retained.
func (s *scope) set(c metav1.Condition) {
	since := c.LastTransitionTime
	c.LastTransitionTime = metav1.NewTime(s.now)
	apimeta.SetStatusCondition(&s.want.Status.Conditions, c)
	if !since.IsZero() {
		apimeta.FindStatusCondition(s.want.Status.Conditions, c.Type).LastTransitionTime = since
	}
}

// summary returns the condition for several registrations: that of the worst, with
// the messages of all registrations of that status.
func summary(items []*item) metav1.Condition {
	all := make([]metav1.Condition, len(items))
	for i, it := range items {
		all[i] = it.condition()
	}
	worst := slices.MinFunc(all, func(a, b metav1.Condition) int { return cmp.Compare(a.Status, b.Status) }) // "False" before "True".
	if len(items) == 1 {
		return worst
	}
	var messages []string
	for i, c := range all {
		if c.Status == worst.Status {
			messages = append(messages, items[i].label()+": "+c.Message)
		}
	}
	worst.Message = strings.Join(messages, "; ")
	return worst
}

// unknownReason is the reason for a registration that was not checked yet, which must
// not be reported as one with a credential.
const unknownReason = "CredentialUnknown"

// condition returns the condition of one registration. A pending renewal while the
// stored credential is valid is not reported.
func (it *item) condition() metav1.Condition {
	st := it.state
	switch {
	case st.usable && (st.waiting.Reason == "" || !st.failing):
		return it.renewed()
	case st.waiting.Reason == "":
		return metav1.Condition{Status: metav1.ConditionFalse, Reason: unknownReason, Message: fmt.Sprintf("the credential of the %s registration has not been checked yet", it.label())}
	}
	c := metav1.Condition{Status: metav1.ConditionFalse, Reason: st.waiting.Reason, Message: st.waiting.Message}
	if st.waiting.Reason != failureReason {
		return c
	}
	failed := it.driver.Report().Failed(st.waiting)
	c.Reason, c.Message = failed.Reason, failed.Message
	return c
}

func (it *item) renewed() metav1.Condition {
	report := it.driver.Report()
	valid := report.Valid(it.state.validity)
	c := metav1.Condition{Status: metav1.ConditionTrue, Reason: valid.Reason, Message: valid.Message}
	if report.Since {
		c.LastTransitionTime = metav1.NewTime(it.state.validity.NotBefore.Truncate(time.Second))
	}
	return c
}

// disown reports that the add-on's agent runs on a cluster that this agent does not
// write to. It reports nothing else about such an add-on.
func (r *Reconciler) disown(s *scope, host string) {
	for _, kind := range names.CredentialConditions() {
		apimeta.RemoveStatusCondition(&s.want.Status.Conditions, kind)
	}
	s.setAll(metav1.Condition{Status: metav1.ConditionFalse, Reason: names.ReasonHostedElsewhere, Message: fmt.Sprintf(
		"annotation %s places the agent of add-on %s on cluster %s, where the agent of %s cannot store a credential; remove the annotation to install the add-on on %s",
		names.AnnotationHostingCluster, s.addOn.Name, host, r.config.Cluster, r.config.Cluster)})
}

// setAll sets the conditions about the credentials of all registrations.
func (s *scope) setAll(c metav1.Condition) {
	for _, it := range s.items {
		for _, c.Type = range it.driver.Report().Conditions {
			s.set(c)
		}
	}
}

// blind reports that the agent cannot read the Secrets of an add-on.
func (r *Reconciler) blind(s *scope) {
	s.setAll(metav1.Condition{Status: metav1.ConditionFalse, Reason: names.ReasonSecretsUnknown, Message: fmt.Sprintf(
		"the agent of %s cannot list Secrets on its cluster; allow the ServiceAccounts in namespace %s to list and watch Secrets", r.config.Cluster, r.config.Namespace)})
}

// write writes the status if it differs. The patch fails on a conflict, because its
// lists have other writers as well.
func (r *Reconciler) write(ctx context.Context, s *scope) error {
	if apiequality.Semantic.DeepEqual(s.addOn.Status, s.want.Status) {
		return nil
	}
	changes := changes(s.addOn, s.want)
	if wait := s.memory.conflictDelay(changes, conflictsBeforeBackoff, s.now); wait > 0 {
		r.log.Info("Backing off: another controller keeps overwriting this status", "addOn", s.addOn.Name, "wait", wait)
		s.after(wait)
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	base := s.addOn.ResourceVersion
	patch := client.MergeFromWithOptions(s.addOn, client.MergeFromWithOptimisticLock{})
	if err := r.config.Live.Status().Patch(ctx, s.want, patch, Owner); err != nil {
		return fmt.Errorf("patch the status of ManagedClusterAddOn %s: %w", s.addOn.Name, err)
	}
	if s.want.ResourceVersion == base {
		base = "" // The write changed nothing on the hub, so no event follows.
	}
	s.memory.base = base
	s.memory.record(changes, s.now)
	return nil
}

// changes returns the digests of the changes of a write, one for the registrations
// and one for each condition: a repeated change of one of them is a conflict, even if
// the others differ.
func changes(before, after *addonv1beta1.ManagedClusterAddOn) []string {
	var digests []string
	if !apiequality.Semantic.DeepEqual(before.Status.Registrations, after.Status.Registrations) {
		digests = append(digests, digest(after.Status.Registrations))
	}
	for _, c := range after.Status.Conditions {
		old := apimeta.FindStatusCondition(before.Status.Conditions, c.Type)
		if old == nil || !apiequality.Semantic.DeepEqual(*old, c) {
			digests = append(digests, digest([]string{c.Type, string(c.Status), c.Reason, c.Message}))
		}
	}
	return digests
}

func digest(change any) string {
	data, err := json.Marshal(change)
	if err != nil {
		return "" // Structures of strings can be encoded.
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
