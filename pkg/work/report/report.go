package report

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1 "open-cluster-management.io/api/work/v1"
	workv1alpha1 "open-cluster-management.io/api/work/v1alpha1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/manifest"
)

// Work is the stable schema of a ManifestWork in the machine formats.
type Work struct {
	Cluster string `json:"cluster"`
	Name    string `json:"name"`
	// Applied and Available are the statuses of the conditions: True, False, Unknown,
	// which is also that of a condition about an earlier generation, or empty.
	Applied   string `json:"applied,omitempty"`
	Available string `json:"available,omitempty"`
	// Ready is the status of the condition Ready, which agents of OCM do not report.
	Ready string `json:"ready,omitempty"`
	// Executor is the ServiceAccount of the managed cluster, NAMESPACE/NAME, that
	// must be allowed to apply the manifests.
	Executor string `json:"executor,omitempty"`
	// Deletion says whether the resources are deleted with the work.
	Deletion string `json:"deletion"`
	// Owner is the object on the hub that the work was made for, as KIND/NAME.
	Owner string `json:"owner,omitempty"`
	// Reason is one sentence about what is missing; empty when nothing is.
	Reason string `json:"reason,omitempty"`
	// Notes are what the agent remarks about a work that is applied: other writers of its
	// objects, and objects that left it and are not deleted.
	Notes     []string   `json:"notes,omitempty"`
	Manifests []Manifest `json:"manifests"`
	Created   time.Time  `json:"created"`
	// Deleting is true while the work is being deleted.
	Deleting bool `json:"deleting,omitempty"`
	// Labels are the labels of the ManifestWork.
	Labels map[string]string `json:"-"`
}

// Manifest is the stable schema of one manifest of a ManifestWork.
type Manifest struct {
	Ordinal   int    `json:"ordinal"`
	Group     string `json:"group,omitempty"`
	Version   string `json:"version,omitempty"`
	Kind      string `json:"kind,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	// Applied, Available and Ready are as in Work; Ready is empty for resources that do not
	// say whether they are ready.
	Applied   string `json:"applied,omitempty"`
	Available string `json:"available,omitempty"`
	Ready     string `json:"ready,omitempty"`
	// Message is the message of the condition that is not True.
	Message string `json:"message,omitempty"`
	// Feedback are the values that were read from the resource, by name.
	Feedback []Value `json:"feedback,omitempty"`
}

// Value is a value that was read from a resource, as text.
type Value struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// String names the resource as KIND NAMESPACE/NAME, or by its place in the work if it
// could not be decoded.
func (m Manifest) String() string {
	if m.Kind == "" {
		return fmt.Sprintf("manifest %d", m.Ordinal)
	}
	if m.Namespace != "" {
		return m.Kind + " " + m.Namespace + "/" + m.Name
	}
	return m.Kind + " " + m.Name
}

// failed begins the messages of manifests that were not applied. A report leaves it out:
// the manifest is not Applied, and a line is short.
const failed = "Failed to apply manifest: "

// Describe sums up a ManifestWork.
func Describe(work *workv1.ManifestWork) Work {
	w := Work{
		Cluster: work.Namespace, Name: work.Name,
		Applied:   state(work, workv1.WorkApplied),
		Available: state(work, workv1.WorkAvailable),
		Ready:     state(work, names.ConditionReady),
		Executor:  executor(work),
		Deletion:  deletion(work),
		Owner:     Owner(work),
		Manifests: manifests(work),
		Created:   work.CreationTimestamp.Time,
		Deleting:  !work.DeletionTimestamp.IsZero(),
		Labels:    work.Labels,
	}
	w.Reason = w.reason(work)
	w.Notes = notes(work)
	return w
}

// Stage is a stage in the delivery of a work.
type Stage string

const (
	// Applied means that all manifests are applied.
	Applied Stage = "applied"
	// Ready means that their resources are also there, and ready where they say whether
	// they are. Of an agent of OCM it is known only that they are there.
	Ready Stage = "ready"
)

// Reached reports whether the last change of the work has reached a stage.
func (w Work) Reached(stage Stage) bool {
	return w.Reason == "" || stage == Applied && w.Applied == string(metav1.ConditionTrue) && !w.Deleting
}

// CountReady returns how many resources are ready, and how many say whether they are.
func (w Work) CountReady() (ready, all int) {
	for _, m := range w.Manifests {
		if m.Ready != "" {
			all++
		}
		if m.Ready == string(metav1.ConditionTrue) {
			ready++
		}
	}
	return ready, all
}

// Observed reports whether the agent has acted on the last change of a work.
func Observed(work *workv1.ManifestWork) bool {
	applied := apimeta.FindStatusCondition(work.Status.Conditions, workv1.WorkApplied)
	return applied != nil && current(work, applied)
}

// state is the status of a condition, Unknown if it is about an earlier generation,
// and empty without one.
func state(work *workv1.ManifestWork, kind string) string {
	condition := apimeta.FindStatusCondition(work.Status.Conditions, kind)
	switch {
	case condition == nil:
		return ""
	case !current(work, condition):
		return string(metav1.ConditionUnknown)
	}
	return string(condition.Status)
}

// current reports whether a condition of the work is about its last change. Agents that
// record no generation are taken at their word.
func current(work *workv1.ManifestWork, condition *metav1.Condition) bool {
	return condition.ObservedGeneration == 0 || condition.ObservedGeneration >= work.Generation
}

func executor(work *workv1.ManifestWork) string {
	e := work.Spec.Executor
	if e == nil || e.Subject.ServiceAccount == nil {
		return ""
	}
	return e.Subject.ServiceAccount.Namespace + "/" + e.Subject.ServiceAccount.Name
}

// deletion is the propagation policy of a work; without one it is the API's default.
func deletion(work *workv1.ManifestWork) string {
	policy := workv1.DeletePropagationPolicyTypeForeground
	if option := work.Spec.DeleteOption; option != nil {
		policy = cmp.Or(option.PropagationPolicy, policy)
	}
	return string(policy)
}

// Owner returns the object on the hub that a work was made for, as KIND/NAME, or empty.
// A ManifestWorkReplicaSet is in another namespace, so that a label names it.
func Owner(work metav1.Object) string {
	if set := work.GetLabels()[workv1alpha1.ManifestWorkReplicaSetControllerNameLabelKey]; set != "" {
		namespace, name, _ := strings.Cut(set, ".")
		return "manifestworkreplicaset/" + namespace + "/" + name
	}
	if len(work.GetOwnerReferences()) == 0 {
		return ""
	}
	first := work.GetOwnerReferences()[0]
	return strings.ToLower(first.Kind) + "/" + first.Name
}

// manifests are those of the spec, with what the status says about each. A status that
// names another resource is about an earlier spec.
func manifests(work *workv1.ManifestWork) []Manifest {
	reported := make(map[int]*workv1.ManifestCondition, len(work.Status.ResourceStatus.Manifests))
	for i := range work.Status.ResourceStatus.Manifests {
		condition := &work.Status.ResourceStatus.Manifests[i]
		reported[int(condition.ResourceMeta.Ordinal)] = condition
	}
	list := []Manifest{}
	for _, decoded := range manifest.Decode(work) {
		meta := decoded.Meta(nil)
		m := Manifest{
			Ordinal: decoded.Ordinal, Group: meta.Group, Version: meta.Version, Kind: meta.Kind,
			Namespace: meta.Namespace, Name: meta.Name,
		}
		if condition := reported[m.Ordinal]; condition != nil && m.isAbout(condition.ResourceMeta) {
			m.add(condition)
		}
		list = append(list, m)
	}
	return list
}

// isAbout reports whether a status is about the manifest. One that the agent could not
// decode names no kind.
func (m Manifest) isAbout(meta workv1.ManifestResourceMeta) bool {
	return meta.Kind == "" || meta.Kind == m.Kind && meta.Name == m.Name
}

func (m *Manifest) add(status *workv1.ManifestCondition) {
	for kind, target := range map[string]*string{
		workv1.ManifestApplied: &m.Applied, workv1.ManifestAvailable: &m.Available, names.ConditionReady: &m.Ready,
	} {
		if condition := apimeta.FindStatusCondition(status.Conditions, kind); condition != nil {
			*target = string(condition.Status)
		}
	}
	m.Message = strings.TrimPrefix(message(status.Conditions, workv1.ManifestApplied, workv1.ManifestAvailable, names.ConditionReady), failed)
	for _, value := range status.StatusFeedbacks.Values {
		m.Feedback = append(m.Feedback, Value{Name: value.Name, Value: text(value.Value)})
	}
}

// message returns the message of the first of the named conditions that is not True.
func message(conditions []metav1.Condition, kinds ...string) string {
	for _, kind := range kinds {
		condition := apimeta.FindStatusCondition(conditions, kind)
		if condition != nil && condition.Status != metav1.ConditionTrue {
			return cmp.Or(strings.TrimSpace(condition.Message), condition.Reason)
		}
	}
	return ""
}

func text(value workv1.FieldValue) string {
	switch {
	case value.Integer != nil:
		return strconv.FormatInt(*value.Integer, 10)
	case value.String != nil:
		return *value.String
	case value.Boolean != nil:
		return strconv.FormatBool(*value.Boolean)
	case value.JsonRaw != nil:
		return *value.JsonRaw
	}
	return ""
}

// Sum names a number of things: 1 manifest, 2 manifests.
func Sum(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
