package diagnose_test

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/diagnose"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/finding"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/diagnosis"
)

// TestDeployment: a rollout in progress is a warning as long as Pods are ready, and a Deployment
// without ready Pods has failed.
func TestDeployment(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		status  appsv1.DeploymentStatus
		want    finding.Status
		message string
	}{
		"ready":       {appsv1.DeploymentStatus{Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1}, finding.OK, "1 pod(s) of ns/web are ready"},
		"rolling out": {appsv1.DeploymentStatus{Replicas: 2, UpdatedReplicas: 1, AvailableReplicas: 1}, finding.Warning, "1 of 1 pods run its current version"},
		"no Pod": {appsv1.DeploymentStatus{Conditions: []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionFalse, Message: "quota exceeded"},
		}}, finding.Failed, "has no ready pod; quota exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := diagnosis.Scope(t, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"}, Spec: appsv1.DeploymentSpec{
				Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			}, Status: tc.status})
			got := s.Deployment("ns", "web")(t.Context())
			if got.Status != tc.want || !strings.Contains(got.Message, tc.message) {
				t.Errorf("%+v, want %s with %q", got, tc.want, tc.message)
			}
		})
	}
	if got := diagnosis.Scope(t).Deployment("ns", "web")(t.Context()); got.Status != finding.Failed || !strings.Contains(got.Try, "kubectl -n ns describe deployment web") {
		t.Errorf("%+v", got)
	}
}

func TestCondition(t *testing.T) {
	t.Parallel()
	conditions := []metav1.Condition{{Type: "Applied", Status: metav1.ConditionFalse, Reason: "R", Message: "m"}}
	for kind, want := range map[string]finding.Outcome{
		"Applied": finding.Bad("try", "Applied is False: m (R)"),
		"Other":   finding.Bad("try", "the operator has not reported Other yet"),
	} {
		if got := diagnose.Condition(conditions, kind, metav1.ConditionTrue, "try"); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	if got := diagnose.Condition(conditions, "Applied", metav1.ConditionFalse, "try"); got != finding.Good("m") {
		t.Errorf("%+v", got)
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	s := diagnosis.Scope(t)
	if got := s.Answers("1.30.0").Run(t.Context()); got.Status != finding.OK {
		t.Errorf("%+v", got)
	}
	if got := s.Answers("1.40.0").Run(t.Context()); got.Status != finding.Failed || got.Message != "Kubernetes v1.36.0 is too old, 1.40.0 is needed" {
		t.Errorf("%+v", got)
	}
}
