package diagnose

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/finding"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/podproblem"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/agent"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/lookup"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/origin"
)

// Answers returns the check that the API server answers, and that its release of Kubernetes
// is at least oldest.
func (s Scope) Answers(oldest string) finding.Step {
	return finding.Step{Name: "the API server answers and is new enough", Needed: true, Run: func(context.Context) finding.Outcome {
		info, err := lookup.ServerVersion(s.Config)
		if err != nil {
			return finding.Broken(err)
		}
		v, err := version.ParseGeneric(info.GitVersion)
		if err == nil && v.Major() > 0 && v.LessThan(version.MustParseGeneric(oldest)) {
			return finding.Bad("upgrade the cluster", "Kubernetes %s is too old, %s is needed", info.GitVersion, oldest)
		}
		if untested := agent.Untested(v); untested != "" {
			return finding.Caution("upgrade the cluster when you can", "%s", untested)
		}
		return finding.Good("Kubernetes %s at %s", info.GitVersion, s.Config.Host)
	}}
}

// Deployment checks that the Pods of a Deployment run its current version. A Deployment whose
// rollout is stuck has failed, although its old Pods still run.
func (s Scope) Deployment(namespace, name string) func(context.Context) finding.Outcome {
	return func(ctx context.Context) finding.Outcome {
		var d appsv1.Deployment
		try := s.Kubectl("-n", namespace, "get deployment,pods") + "; " + s.Kubectl("-n", namespace, "describe deployment", name)
		if err := s.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &d); err != nil {
			return finding.Bad(try, "deployment %s/%s: %v", namespace, name, err)
		}
		if found := s.rolling(ctx, &d, try); found.Status != finding.OK {
			return found
		}
		return finding.Good("%d pod(s) of %s/%s are ready", d.Status.AvailableReplicas, namespace, name)
	}
}

// rolling checks how far the rollout of a Deployment is.
func (s Scope) rolling(ctx context.Context, d *appsv1.Deployment, try string) finding.Outcome {
	wanted, rolledOut := rollout(d)
	if rolledOut && d.Status.AvailableReplicas > 0 {
		return finding.Good("")
	}
	problem, err := podproblem.OfDeployment(ctx, s.Client, d)
	switch {
	case err != nil && !apierrors.IsForbidden(err):
		return finding.Broken(err)
	case problem != "":
		return finding.Bad(try, "deployment %s/%s: %s", d.Namespace, d.Name, problem)
	case d.Status.AvailableReplicas > 0:
		return finding.Caution(try, "deployment %s/%s is rolling out: %d of %d pods run its current version, %d are ready",
			d.Namespace, d.Name, d.Status.UpdatedReplicas, wanted, d.Status.AvailableReplicas)
	}
	causes := []string{fmt.Sprintf("deployment %s/%s has no ready pod", d.Namespace, d.Name)}
	for _, c := range d.Status.Conditions {
		if c.Status != "True" || c.Type == appsv1.DeploymentReplicaFailure {
			causes = append(causes, c.Message)
		}
	}
	return finding.Bad(try, "%s", strings.Join(causes, "; "))
}

// rollout returns how many Pods a Deployment wants, and whether all of them run
// its current version.
func rollout(d *appsv1.Deployment) (wanted int32, rolledOut bool) {
	wanted = 1
	if d.Spec.Replicas != nil {
		wanted = *d.Spec.Replicas
	}
	return wanted, d.Status.ObservedGeneration >= d.Generation && d.Status.UpdatedReplicas >= wanted &&
		d.Status.AvailableReplicas >= wanted && d.Status.Replicas == d.Status.UpdatedReplicas
}

// Operator checks the Deployment called name of the operator: ours, or that of another
// product.
func (s Scope) Operator(other *origin.Installation, name string) func(context.Context) finding.Outcome {
	namespace := names.OperatorNamespace
	if other != nil && len(other.Operators) > 0 {
		namespace = other.Operators[0].Namespace
	}
	return s.Deployment(namespace, name)
}

// Condition checks that a condition has the wanted status. try is the advice if it has
// not.
func Condition(conditions []metav1.Condition, kind string, want metav1.ConditionStatus, try string) finding.Outcome {
	c := apimeta.FindStatusCondition(conditions, kind)
	switch {
	case c == nil:
		return finding.Bad(try, "the operator has not reported %s yet", kind)
	case c.Status != want:
		return finding.Bad(try, "%s is %s: %s (%s)", kind, c.Status, c.Message, c.Reason)
	}
	return finding.Good("%s", c.Message)
}
