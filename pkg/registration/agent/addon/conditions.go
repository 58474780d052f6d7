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

// reports is whether a condition of this type is about the registration.
func (it *item) reports(kind string) bool {
	return slices.Contains(it.driver.Report().Conditions, kind)
}

// tellCredentials sets the conditions of the drivers in use and removes those
// of others, which an earlier driver left. One driver has one answer for all its
// registrations.
func (r *Reconciler) tellCredentials(s *scope) {
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

// tellSwitch says, together with the new driver, that an add-on that had tokens
// has no certificate for its kubeClient registration yet: the hub keeps what the
// token depends on until the condition is True, which it may have been for the
// add-on's other signers.
func (r *Reconciler) tellSwitch(s *scope) {
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
				Message: "waiting for the certificate of the kubeClient registration, which had a token so far",
			})
		}
	}
}

// set sets a condition of the status that is to be written. One that knows
// since when it holds keeps that time.
func (s *scope) set(c metav1.Condition) {
	since := c.LastTransitionTime
	c.LastTransitionTime = metav1.NewTime(s.now)
	apimeta.SetStatusCondition(&s.want.Status.Conditions, c)
	if !since.IsZero() {
		apimeta.FindStatusCondition(s.want.Status.Conditions, c.Type).LastTransitionTime = since
	}
}

// summary is the condition of several registrations: that of the worst, with
// the words of all that are as bad. One that is fine needs no words beside
// another that is not.
func summary(items []*item) metav1.Condition {
	all := make([]metav1.Condition, len(items))
	for i, it := range items {
		all[i] = it.condition()
	}
	worst := slices.MinFunc(all, func(a, b metav1.Condition) int { return cmp.Compare(a.Status, b.Status) }) // "False" before "True".
	if len(items) == 1 {
		return worst
	}
	var words []string
	for i, c := range all {
		if c.Status == worst.Status {
			words = append(words, items[i].label()+": "+c.Message)
		}
	}
	worst.Message = strings.Join(words, "; ")
	return worst
}

// unknownReason is the reason of a registration of which nothing is known: it must
// not be taken for one with a credential.
const unknownReason = "CredentialUnknown"

// condition tells how one registration stands. A new credential that is on its
// way while the old one is good is nobody's trouble.
func (it *item) condition() metav1.Condition {
	st := it.state
	switch {
	case st.usable && (st.waiting.Reason == "" || !st.failing):
		return it.renewed()
	case st.waiting.Reason == "":
		return metav1.Condition{Status: metav1.ConditionFalse, Reason: unknownReason, Message: fmt.Sprintf("the agent has not checked the credential of the %s registration yet", it.label())}
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

// disown says that an add-on's agent runs on a cluster that this agent does not
// write to. Nothing else is said of such an add-on.
func (r *Reconciler) disown(s *scope, host string) {
	for _, kind := range names.CredentialConditions() {
		apimeta.RemoveStatusCondition(&s.want.Status.Conditions, kind)
	}
	s.setAll(metav1.Condition{Status: metav1.ConditionFalse, Reason: names.ReasonHostedElsewhere, Message: fmt.Sprintf(
		"annotation %s says that the agent of add-on %s runs on cluster %s; the agent of %s runs on its own cluster and stores no credential there, so remove the annotation to install the add-on on %s",
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

// blind says that the agent cannot know what it keeps for an add-on.
func (r *Reconciler) blind(s *scope) {
	s.setAll(metav1.Condition{Status: metav1.ConditionFalse, Reason: names.ReasonSecretsUnknown, Message: fmt.Sprintf(
		"the agent of %s cannot list Secrets on its cluster: check that ServiceAccounts in namespace %s may list and watch them there", r.config.Cluster, r.config.Namespace)})
}

// write writes the status if it differs. The lists in it are written by others
// as well, so the patch must fail on any version but the one it was made from.
func (r *Reconciler) write(ctx context.Context, s *scope) error {
	if apiequality.Semantic.DeepEqual(s.addOn.Status, s.want.Status) {
		return nil
	}
	said := said(s.addOn, s.want)
	if wait := s.memory.contest(said, quarrelAfter, s.now); wait > 0 {
		r.log.Info("Waiting before writing the same status again, which somebody keeps changing", "addOn", s.addOn.Name, "wait", wait)
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
		base = "" // The hub keeps nothing of it, so no event will tell.
	}
	s.memory.base = base
	s.memory.say(said, s.now)
	return nil
}

// said are digests of what a write says anew, of the registrations and of each
// condition apart: what one of them says comes back, together it may not.
func said(before, after *addonv1beta1.ManagedClusterAddOn) []string {
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

func digest(said any) string {
	data, err := json.Marshal(said)
	if err != nil {
		return "" // Structures of strings can be encoded.
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
