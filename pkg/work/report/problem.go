package report

import (
	"fmt"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// refused begins what an agent reports about a manifest that the executor of the work
// may not apply: ours, and OCM's with its NotAllowedError.
const refused = "not allowed"

// reason is the first thing that is missing on the way of a work.
func (w Work) reason(work *workv1.ManifestWork) string {
	switch {
	case w.Deleting:
		return "being deleted: " + deletionWaits(work)
	case w.Applied == "":
		return "the agent has not reported yet"
	case !Observed(work):
		return "the agent has not applied the last change yet"
	case w.Applied != string(metav1.ConditionTrue):
		return first(w.NotApplied(), message(work.Status.Conditions, workv1.WorkApplied))
	case w.Available == "":
		return "applied; the agent has not reported whether it is available"
	case w.Available != string(metav1.ConditionTrue):
		return first(w.NotAvailable(), w.unavailable(work))
	case w.Ready != "" && w.Ready != string(metav1.ConditionTrue):
		return first(w.NotReady(), message(work.Status.Conditions, names.ConditionReady))
	}
	return ""
}

// deletionWaits is what the agent reports about a deletion that takes long; before that, the
// finalizers by which agents retain the work.
func deletionWaits(work *workv1.ManifestWork) string {
	if note := remark(work.Status.Conditions, workv1.WorkDeleting, names.MessageWorkDeleting); note != "" {
		return note
	}
	return "waits for " + strings.Join(work.Finalizers, ", ")
}

// notes are the remarks of the agent about a work and manifests that are applied.
func notes(work *workv1.ManifestWork) []string {
	var found []string
	if note := remark(work.Status.Conditions, workv1.WorkApplied, names.MessageWorkApplied); note != "" {
		found = append(found, note)
	}
	for _, m := range work.Status.ResourceStatus.Manifests {
		if note := remark(m.Conditions, workv1.ManifestApplied, names.MessageManifestApplied); note != "" {
			about := Manifest{Ordinal: int(m.ResourceMeta.Ordinal), Kind: m.ResourceMeta.Kind, Namespace: m.ResourceMeta.Namespace, Name: m.ResourceMeta.Name}
			found = append(found, about.String()+": "+note)
		}
	}
	return found
}

// remark returns the part of a condition's message after the usual text.
func remark(conditions []metav1.Condition, kind, usual string) string {
	if condition := apimeta.FindStatusCondition(conditions, kind); condition != nil {
		if note, ok := strings.CutPrefix(condition.Message, usual+"; "); ok {
			return note
		}
	}
	return ""
}

// unavailable returns the problem that the agent reports about the whole work.
func (w Work) unavailable(work *workv1.ManifestWork) string {
	condition := apimeta.FindStatusCondition(work.Status.Conditions, workv1.WorkAvailable)
	if !current(work, condition) {
		return "applied; the agent has not reported whether the last change is available"
	}
	return message(work.Status.Conditions, workv1.WorkAvailable)
}

// NotApplied are the manifests that the agent reports as not applied.
func (w Work) NotApplied() []Manifest {
	return w.without(func(m Manifest) string { return m.Applied })
}

// NotAvailable are the manifests that the agent reports as not available.
func (w Work) NotAvailable() []Manifest {
	return w.without(func(m Manifest) string { return m.Available })
}

// NotReady are the manifests whose resources the agent reports as not ready.
func (w Work) NotReady() []Manifest {
	return w.without(func(m Manifest) string { return m.Ready })
}

// Refused are the manifests that the executor of the work may not apply.
func (w Work) Refused() []Manifest {
	var list []Manifest
	for _, m := range w.NotApplied() {
		if strings.HasPrefix(m.Message, refused) {
			list = append(list, m)
		}
	}
	return list
}

// Feedback are the values of all manifests, as NAME=VALUE.
func (w Work) Feedback() []string {
	var list []string
	for _, m := range w.Manifests {
		for _, v := range m.Feedback {
			list = append(list, v.Name+"="+v.Value)
		}
	}
	return list
}

// without are the manifests whose state is known and not True.
func (w Work) without(state func(Manifest) string) []Manifest {
	var list []Manifest
	for _, m := range w.Manifests {
		if s := state(m); s != "" && s != string(metav1.ConditionTrue) {
			list = append(list, m)
		}
	}
	return list
}

// first says what is wrong with the first of the manifests, and how many more there
// are; without any it is what the agent reports of the work.
func first(list []Manifest, work string) string {
	if len(list) == 0 {
		return work
	}
	text := list[0].String() + ": " + list[0].Message
	if more := len(list) - 1; more > 0 {
		text += fmt.Sprintf(" (and %d more)", more)
	}
	return text
}
