package inventory

import (
	"context"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pages"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/podproblem"
)

// ListExplained is List, but the message of each add-on without registrations says what
// prevents its hub controller from running, if that is known. It reads all Deployments
// of the hub when there is such an add-on, so it is for callers that list once. Without
// permission to read Deployments or Pods, it returns List's messages. See
// docs/guides/addons.md.
func ListExplained(ctx context.Context, c client.Client, f Filter, now time.Time, warn Warn) ([]AddOn, error) {
	list, err := List(ctx, c, f, now, warn)
	if err != nil {
		return nil, err
	}
	if err := explainUnregistered(ctx, c, list); err != nil && !apierrors.IsForbidden(err) {
		warn("why hub controllers of add-ons do not run is not shown: %v", err)
	}
	return list, nil
}

func explainUnregistered(ctx context.Context, c client.Client, list []AddOn) error {
	controllers := map[string][]*appsv1.Deployment{}
	for _, a := range list {
		if a.Reason == ReasonNoRegistration {
			controllers[a.Name] = nil
		}
	}
	if len(controllers) == 0 {
		return nil
	}
	err := pages.Each(ctx, c, &appsv1.DeploymentList{}, func(d *appsv1.Deployment) {
		for addOn := range controllers {
			if mayControl(d, addOn) {
				controllers[addOn] = append(controllers[addOn], d.DeepCopy())
			}
		}
	})
	if err != nil {
		return err
	}
	problems := map[string]string{}
	for addOn, found := range controllers {
		if problems[addOn], err = controllerProblem(ctx, c, found); err != nil {
			return err
		}
	}
	for i, a := range list {
		if problem := problems[a.Name]; problem != "" && a.Reason == ReasonNoRegistration {
			list[i].Message += "; " + problem
		}
	}
	return nil
}

// mayControl reports whether a Deployment may be the hub controller of an add-on. No object
// says which one is: by convention its name is the add-on's, or begins with it and a hyphen.
func mayControl(d *appsv1.Deployment, addOn string) bool {
	return d.Name == addOn || strings.HasPrefix(d.Name, addOn+"-")
}

// controllerProblem returns why none of the Deployments has a replica that runs, and "" if one
// has, or if all are only starting.
func controllerProblem(ctx context.Context, c client.Client, found []*appsv1.Deployment) (string, error) {
	for _, d := range found {
		if d.Status.AvailableReplicas > 0 {
			return "", nil
		}
	}
	for _, d := range found {
		problem := "it is scaled to 0"
		if d.Spec.Replicas == nil || *d.Spec.Replicas > 0 {
			var err error
			if problem, err = podproblem.OfDeployment(ctx, c, d); err != nil {
				return "", err
			}
		}
		if problem != "" {
			return fmt.Sprintf("Deployment %s in namespace %s: %s", d.Name, d.Namespace, problem), nil
		}
	}
	return "", nil
}
