package work

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	workv1alpha1 "open-cluster-management.io/api/work/v1alpha1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/diagnose"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/finding"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/excerpt"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/printable"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/lookup"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/inventory"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/delivery"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/report"
)

// work is a ManifestWork that is checked. The check that the hub has it reads what later ones
// need.
type work struct {
	diagnose.Scope

	name    string
	cluster string
	work    workv1.ManifestWork
	// report sums up the ManifestWork.
	report report.Work
}

// Steps returns the checks of the ManifestWork called name on a cluster, made on the hub.
func Steps(s diagnose.Scope, cluster, name string) []finding.Step {
	w := &work{Scope: s, name: name, cluster: cluster}
	return []finding.Step{
		{Name: "the hub has the ManifestWork", Needed: true, Run: w.known},
		{Name: "the cluster is connected", Run: w.connected},
		{Name: "the ManifestWork reached the agent", Needed: true, Run: w.reached},
		{Name: "its executor is allowed", Run: w.allowed},
		{Name: "its manifests are applied", Run: w.applied},
		{Name: "its resources are available", Run: w.available},
		{Name: "its resources are ready", Run: w.ready},
		{Name: "its feedback is up to date", Run: w.feedback},
	}
}

func (w *work) known(ctx context.Context) finding.Outcome {
	err := w.Client.Get(ctx, client.ObjectKey{Namespace: w.cluster, Name: w.name}, &w.work)
	if lookup.Gone(err) {
		return w.missing(ctx)
	}
	if err != nil {
		return finding.Broken(err)
	}
	w.report = report.Describe(&w.work)
	if !w.work.DeletionTimestamp.IsZero() {
		return w.deleting(ctx)
	}
	text := report.Sum(len(w.report.Manifests), "manifest")
	if w.report.Owner != "" {
		text += ", written for " + w.report.Owner
	}
	return finding.Good("%s", text)
}

// deleting reports what the deletion of the ManifestWork waits for. It can be forced only without
// an agent: otherwise objects would remain that the agent deletes.
func (w *work) deleting(ctx context.Context) finding.Outcome {
	hint := "on the managed cluster, end what holds the objects up: the agent continues at once"
	away, err := delivery.AgentIsAway(ctx, w.Client, w.cluster)
	if err != nil {
		return finding.Broken(err)
	}
	if away {
		hint = "the agent is away; without it: " + w.Command("delete work", w.name, "--clusters", w.cluster, "--force")
	}
	return finding.Bad(hint, "it is %s", w.report.Reason)
}

// missing reports that there is no such ManifestWork, and what a ManifestWorkReplicaSet of its
// name waits for, which may be meant to create it.
func (w *work) missing(ctx context.Context) finding.Outcome {
	problems := []string{fmt.Sprintf("there is no ManifestWork %s in namespace %s", w.name, w.cluster)}
	var list workv1alpha1.ManifestWorkReplicaSetList
	if err := w.Client.List(ctx, &list); err != nil && !lookup.Gone(err) && !apierrors.IsForbidden(err) {
		return finding.Broken(err)
	}
	for i := range list.Items {
		if set := &list.Items[i]; set.Name == w.name {
			problems = append(problems, fmt.Sprintf("ManifestWorkReplicaSet %s/%s: %s", set.Namespace, set.Name, printable.Line(progress(set))))
		}
	}
	return finding.Bad(w.Command("get works", "--clusters", w.cluster), "%s", strings.Join(problems, "\n"))
}

// progress returns what a ManifestWorkReplicaSet waits for, or the message of its last condition.
func progress(set *workv1alpha1.ManifestWorkReplicaSet) string {
	state := "the hub has not looked at it: it needs the feature gate ManifestWorkReplicaSet"
	for _, c := range set.Status.Conditions {
		if state = c.Message; c.Status != metav1.ConditionTrue {
			break
		}
	}
	return state
}

// connected checks that the cluster is available: its agents share one credential, so the work
// agent of an available cluster reaches the hub.
func (w *work) connected(ctx context.Context) finding.Outcome {
	cluster := &clusterv1.ManagedCluster{}
	if err := w.Client.Get(ctx, client.ObjectKey{Name: w.cluster}, cluster); err != nil {
		return finding.Broken(err)
	}
	state := inventory.Describe(w.Drivers, cluster, nil)
	if state.Reason != "" {
		return finding.Bad(w.Command("check cluster", w.cluster), "%s", state.Reason)
	}
	return finding.Good("")
}

// reached checks whether the agent has acted on the last change. Its finalizer is the
// first thing that it writes.
func (w *work) reached(context.Context) finding.Outcome {
	onCluster := w.OnManagedCluster("check agent")
	switch {
	case w.report.Applied == "" && !controllerutil.ContainsFinalizer(&w.work, names.FinalizerManifestWork):
		return finding.Bad(onCluster, "no work agent has seen it")
	case !report.Observed(&w.work):
		return finding.Bad(onCluster, "the work agent has seen it; %s", w.report.Reason)
	}
	return finding.Good("generation %d", w.work.Generation)
}

// allowed checks what the agent reports about the executor.
func (w *work) allowed(context.Context) finding.Outcome {
	switch refused := w.report.Refused(); {
	case len(refused) > 0:
		return finding.Bad("grant it on the managed cluster; the agent retries within a minute",
			"%s may not apply:\n%s", cmp.Or(w.report.Executor, "the executor"), lines(refused))
	case w.report.Executor == "":
		return finding.Good("none is set: the agent applies with its own permissions")
	}
	return finding.Good("%s", w.report.Executor)
}

func (w *work) applied(context.Context) finding.Outcome {
	failed := w.report.NotApplied()
	if refused := w.report.Refused(); len(refused) > 0 && len(refused) == len(failed) {
		return finding.Skip(diagnose.Needs + "its executor is allowed")
	}
	if notes := w.report.Notes; len(notes) > 0 && w.report.Applied == string(metav1.ConditionTrue) {
		return finding.Caution(w.inspect(), "%s", strings.Join(notes, "\n"))
	}
	return w.state(w.report.Applied, failed)
}

func (w *work) available(context.Context) finding.Outcome {
	if w.report.Applied != string(metav1.ConditionTrue) && w.report.Available != string(metav1.ConditionTrue) {
		return finding.Skip(diagnose.Needs + "its manifests are applied")
	}
	return w.state(w.report.Available, w.report.NotAvailable())
}

// ready checks the workloads, and the custom resources that report whether they are ready.
func (w *work) ready(context.Context) finding.Outcome {
	n, all := w.report.CountReady()
	switch {
	case w.report.Applied != string(metav1.ConditionTrue) || w.report.Available != string(metav1.ConditionTrue):
		return finding.Skip(diagnose.Needs + "its resources are available")
	case w.report.Ready == "":
		return finding.Skip("the agent does not report it")
	case w.report.Ready == string(metav1.ConditionTrue) && all == 0:
		return finding.Good("none says whether it is")
	case w.report.Ready == string(metav1.ConditionTrue):
		return finding.Good("%d of %d", n, all)
	}
	return w.state(w.report.Ready, w.report.NotReady())
}

// state checks a condition of the ManifestWork, and names the manifests for which it is not True.
func (w *work) state(status string, without []report.Manifest) finding.Outcome {
	switch {
	case status == string(metav1.ConditionTrue):
		return finding.Good("")
	case len(without) > 0:
		return finding.Bad(w.inspect(), "%s", lines(without))
	}
	return finding.Bad(w.inspect(), "%s", w.report.Reason)
}

// feedback checks the values that the feedback rules of the ManifestWork ask for.
func (w *work) feedback(context.Context) finding.Outcome {
	var failed []string
	for _, m := range w.work.Status.ResourceStatus.Manifests {
		c := apimeta.FindStatusCondition(m.Conditions, names.ConditionStatusFeedbackSynced)
		if c != nil && c.Status == metav1.ConditionFalse {
			failed = append(failed, strings.TrimSpace(fmt.Sprintf("%s %s/%s: %s", m.ResourceMeta.Kind, m.ResourceMeta.Namespace, m.ResourceMeta.Name, c.Message)))
		}
	}
	if len(failed) > 0 {
		return finding.Bad("correct the feedback rules of the ManifestWork", "%s", strings.Join(failed, "\n"))
	}
	if values := w.report.Feedback(); len(values) > 0 {
		return finding.Good("%s", excerpt.List(values, ", "))
	}
	return finding.Good("no values were asked for")
}

// inspect returns the command that shows all manifests.
func (w *work) inspect() string {
	return w.Command("get works", w.name, "--clusters", w.cluster, "-o tree")
}

// lines returns what the agent reports about each manifest.
func lines(list []report.Manifest) string {
	text := make([]string, len(list))
	for i, m := range list {
		text[i] = m.String() + ": " + m.Message
	}
	return strings.Join(text, "\n")
}
