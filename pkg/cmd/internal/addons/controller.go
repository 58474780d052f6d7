package addons

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pages"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/podproblem"
)

// explainUnregistered adds, to the message of each add-on without registrations, what keeps
// its hub controller from running. No object says which Deployment that is: by convention its
// name is that of the add-on, or begins with it and a hyphen. Without permission to read
// Deployments or Pods the messages stay as they are.
func explainUnregistered(ctx context.Context, c client.Client, list []AddOn) error {
	problems := map[string]string{}
	for i := range list {
		if list[i].Reason == ReasonNoRegistration {
			problems[list[i].Name] = ""
		}
	}
	if len(problems) == 0 {
		return nil
	}
	if err := controllerProblems(ctx, c, problems); err != nil {
		if apierrors.IsForbidden(err) {
			return nil
		}
		return fmt.Errorf("hub controllers of add-ons: %w", err)
	}
	for i := range list {
		if problem := problems[list[i].Name]; problem != "" && list[i].Reason == ReasonNoRegistration {
			list[i].Message += "; " + problem
		}
	}
	return nil
}

// controllerProblems sets the value for each add-on whose hub controller does not run.
func controllerProblems(ctx context.Context, c client.Client, problems map[string]string) error {
	var down []*appsv1.Deployment
	err := pages.Each(ctx, c, &appsv1.DeploymentList{}, func(d *appsv1.Deployment) {
		if d.Status.AvailableReplicas == 0 {
			down = append(down, d.DeepCopy())
		}
	})
	if err != nil {
		return err
	}
	for addOn := range problems {
		for _, d := range down {
			if d.Name != addOn && !strings.HasPrefix(d.Name, addOn+"-") {
				continue
			}
			problem, err := controllerProblem(ctx, c, d)
			if err != nil {
				return err
			}
			if problem != "" {
				problems[addOn] = fmt.Sprintf("Deployment %s in namespace %s: %s", d.Name, d.Namespace, problem)
				break
			}
		}
	}
	return nil
}

// controllerProblem is why a Deployment without available replicas has none; empty for one
// that is only starting.
func controllerProblem(ctx context.Context, c client.Client, d *appsv1.Deployment) (string, error) {
	if d.Spec.Replicas != nil && *d.Spec.Replicas == 0 {
		return "it is scaled to 0", nil
	}
	return podproblem.OfDeployment(ctx, c, d)
}
