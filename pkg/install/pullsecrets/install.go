package pullsecrets

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/apply"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/lookup"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// minPullSecrets is the oldest Kubernetes whose tokens can be bound to Secrets and
// have their audience checked in all the ways that the controller relies on.
const minPullSecrets = "1.24.0"

// pullSecretReplicas is one Pod at work and one that takes over at once.
const pullSecretReplicas = 2

// Values describe the desired image pull secret controller. A zero field
// of Workload keeps what is live.
type Values struct {
	install.Workload
	// Controller is the controller's arguments and what they need. Its Pods, image
	// pull credentials and namespace follow from Workload.
	Controller manifests.ImagePull
}

// Render returns the objects of a new installation without looking at a cluster.
func (p Values) Render() ([]client.Object, error) { return p.objects(nil, nil) }

// objects returns what the controller consists of, over a live Deployment and its
// image pull credentials.
func (p Values) objects(live *appsv1.Deployment, credentials []byte) ([]client.Object, error) {
	values := p.Controller
	values.SkipNamespace = p.KeepNamespace
	values.DockerConfig = install.FirstSet(p.PullCredentials, credentials)
	values.Controller.Pod = p.pod(live)
	objs, err := manifests.RenderImagePull(values)
	return apply.Objects(objs), err
}

// pod returns the desired Pods, with live values where nothing else is wanted.
func (p Values) pod(live *appsv1.Deployment) manifests.Pod {
	var before corev1.PodSpec
	if live != nil {
		before = live.Spec.Template.Spec
	}
	pod := manifests.Pod{
		Replicas: pullSecretReplicas, Resources: manifests.Resources(p.Resources),
		NodeSelector: before.NodeSelector, Tolerations: before.Tolerations,
	}
	if len(before.Containers) > 0 && p.Resources == nil {
		pod.Resources = before.Containers[0].Resources
	}
	pod.Image = p.ImageOver(containerImage(live))
	if p.Placement != nil {
		pod.NodeSelector, pod.Tolerations = p.Placement.NodeSelector, p.Placement.Tolerations
	}
	return pod
}

// containerImage is the image that a live Deployment runs, "" if there is none.
func containerImage(live *appsv1.Deployment) string {
	if live == nil || len(live.Spec.Template.Spec.Containers) == 0 {
		return ""
	}
	return live.Spec.Template.Spec.Containers[0].Image
}

// Args returns the arguments of the installed controller, none if there
// is no controller.
func (r Runner) Args(ctx context.Context) ([]string, error) {
	live, err := r.deployment(ctx)
	if live == nil || err != nil || len(live.Spec.Template.Spec.Containers) == 0 {
		return nil, err
	}
	return live.Spec.Template.Spec.Containers[0].Args, nil
}

// deployment reads the live Deployment, nil if there is none.
func (r Runner) deployment(ctx context.Context) (*appsv1.Deployment, error) {
	key := client.ObjectKey{Namespace: names.ImagePullNamespace, Name: names.ImagePullDeployment}
	return lookup.Get(ctx, r.Client, key, &appsv1.Deployment{})
}

// Install installs or updates the image pull secret controller, removes the
// permissions that it no longer needs, and waits, if asked to, until it is
// ready.
func (r Runner) Install(ctx context.Context, p Values) (install.Outcome, error) {
	var (
		out  install.Outcome
		objs []client.Object
	)
	warnings, err := r.Preflight(ctx, func(ctx context.Context) (findings []install.Finding, err error) {
		if objs, err = r.objects(ctx, p); err != nil {
			return nil, err
		}
		return r.check(ctx, p, objs)
	})
	out.Warnings = warnings
	if err != nil {
		return out, err
	}
	if out.Changes, err = r.Apply(ctx, "Installing the image pull secret controller", objs); err != nil {
		return out, err
	}
	pruned, err := r.prune(ctx, objs)
	out.Changes = append(out.Changes, pruned...)
	if err != nil || !r.Wait {
		return out, err
	}
	return out, r.Await(ctx, "Waiting for the image pull secret controller", install.DeploymentReady(names.ImagePullNamespace, names.ImagePullDeployment))
}

func (r Runner) objects(ctx context.Context, p Values) ([]client.Object, error) {
	live, err := r.deployment(ctx)
	if err != nil {
		return nil, err
	}
	pull, err := lookup.SecretData(ctx, r.Client, names.ImagePullNamespace, names.ImagePullSecret)
	if err != nil {
		return nil, err
	}
	return p.objects(live, pull[corev1.DockerConfigJsonKey])
}

// permissions are the installed permissions of the controller, as far as
// they are not among objs.
func (r Runner) permissions(ctx context.Context, objs []client.Object) ([]client.Object, error) {
	var found []client.Object
	for _, list := range []client.ObjectList{
		&rbacv1.RoleBindingList{}, &rbacv1.RoleList{}, &rbacv1.ClusterRoleBindingList{}, &rbacv1.ClusterRoleList{},
	} {
		if err := r.Client.List(ctx, list, client.MatchingLabels{names.LabelPartOf: names.PartOfImagePull}); err != nil {
			return nil, fmt.Errorf("permissions of the image pull secret controller: %w", err)
		}
		err := apimeta.EachListItem(list, func(item runtime.Object) error {
			if obj, ok := item.(client.Object); ok {
				found = append(found, obj)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	known := map[string]bool{}
	for _, obj := range objs {
		known[r.Describe(obj)] = true
	}
	return slices.DeleteFunc(found, func(obj client.Object) bool {
		return !install.Owned(obj) || known[r.Describe(obj)]
	}), nil
}

// prune deletes permissions that are no longer needed.
func (r Runner) prune(ctx context.Context, objs []client.Object) (changes apply.ChangeSet, err error) {
	stale, err := r.permissions(ctx, objs)
	if err != nil || len(stale) == 0 {
		return nil, err
	}
	err = r.Step(ctx, "Removing permissions that are no longer needed", func(ctx context.Context, say install.Say) error {
		changes, err = r.Applier().Delete(ctx, stale...)
		for _, change := range changes {
			say("%s %s%s", change.Object, change.Action, r.DryRunSuffix())
		}
		return err
	})
	return changes, err
}
