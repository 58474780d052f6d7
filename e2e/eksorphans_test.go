package e2e_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/aws"
)

// testOrphans runs the CronJob of the examples, with the policy of the
// documentation, by hand: its Job succeeds on a hub in order, and fails with the
// command that removes what is left.
func (e *eks) testOrphans(t *testing.T) {
	e.applyExample(t)
	if log := e.look(t, "in-order", batchv1.JobComplete); !strings.Contains(log, "none of 2") {
		t.Errorf("it does not see the roles of both clusters:\n%s", log)
	}
	left := aws.Role{
		ARN: "arn:aws:iam::" + eksAccount("hub") + ":role/ocm-hub-left", Trust: e.roles(t, "hub")[0].Trust,
		Tags: map[string]string{"open-cluster-management.io/hub-cluster-arn": eksARN("hub")},
	}
	e.cloud.AddRole(t, left)
	defer e.cloud.RemoveRole(left.ARN)
	if log := e.look(t, "left", batchv1.JobFailed); !strings.Contains(log, "1 of 3") || !strings.Contains(log, "aws iam delete-role --role-name ocm-hub-left\n") {
		t.Errorf("it does not say how to remove the role that is left:\n%s", log)
	}
}

// applyExample applies the example, edited for this hub, and creates its role.
func (e *eks) applyExample(t *testing.T) {
	t.Helper()
	var controller appsv1.Deployment
	key := client.ObjectKey{Namespace: names.HubNamespace, Name: names.HubRegistrationDeployment(names.ClusterManagerName)}
	if err := e.client(t, "hub").Get(t.Context(), key, &controller); err != nil {
		t.Fatal(err)
	}
	edited := func(path, begin, end string) string {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		_, text, _ := strings.Cut(string(data), begin)
		if end != "" {
			_, text, _ = strings.Cut(text, end)
			text, _, _ = strings.Cut(text, "```")
		}
		return strings.NewReplacer("oidc.eks.eu-west-1.amazonaws.com/id/0123456789ABCDEF", eksIssuer, "eu-west-1", eksRegion,
			"IMAGE", controller.Spec.Template.Spec.Containers[0].Image).Replace(text)
	}
	policy := edited("../docs/guides/aws.md", "\n## Checking\n", "```json\n")
	trust := strings.ReplaceAll(e.roles(t, "hub")[0].Trust, names.HubRegistrationServiceAccount, "aws-check")
	e.cloud.AddRole(t, aws.Role{ARN: "arn:aws:iam::" + eksAccount("hub") + ":role/ocm-aws-check", Trust: trust, Policies: map[string]string{"check": policy}})
	objects := writeFile(t, []byte(edited("../examples/aws-orphans/cronjob.yaml", "", "")))
	if _, err := e.kubectlOnHub(t.Context(), "apply", "-f", objects); err != nil {
		t.Fatal(err)
	}
}

// look runs the CronJob once, waits for how its Job ends, and returns its log.
func (e *eks) look(t *testing.T, name string, end batchv1.JobConditionType) string {
	t.Helper()
	inHub := []string{"-n", names.HubNamespace}
	if _, err := e.kubectlOnHub(t.Context(), append(inHub, "create", "job", name, "--from=cronjob/aws-check")...); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the Job "+name+" ends", func(ctx context.Context) error {
		var job batchv1.Job
		if err := e.client(t, "hub").Get(ctx, client.ObjectKey{Namespace: names.HubNamespace, Name: name}, &job); err != nil {
			return err
		}
		if !slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
			return c.Status == corev1.ConditionTrue && (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed)
		}) {
			return fmt.Errorf("its conditions are %+v", job.Status.Conditions)
		}
		if !slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool { return c.Type == end }) {
			t.Errorf("the Job %s ended with %+v, want %s", name, job.Status.Conditions, end)
		}
		return nil
	})
	log, err := e.kubectlOnHub(t.Context(), append(inHub, "logs", "job/"+name)...)
	if err != nil {
		t.Fatal(err)
	}
	return log
}
