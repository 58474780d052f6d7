package install

import (
	"context"
	"errors"
	"slices"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apply"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/podproblem"
)

// PullError says that a Pod could not pull its image twice. A wait ends with it, because
// the kubelet waits longer before each retry.
type PullError struct {
	// Problem names the Pod, its image and the reason.
	Problem string
}

// Error implements error.
func (e *PullError) Error() string { return e.Problem }

// Hint returns the advice to the user.
func (e *PullError) Hint() string {
	return "name an image that the nodes can pull with --image, and its credentials with --image-pull-credential-file; " +
		"or build it with \"make image\" and load it into every node, as with \"kind load image-archive\"; then run the command again"
}

// podLook looks at the Pods of the Deployments that are waited for: a Deployment
// itself does not say that an image cannot be pulled.
type podLook struct {
	stop context.CancelCauseFunc
	wg   sync.WaitGroup

	mu       sync.Mutex
	problems map[client.ObjectKey]string
	pulls    map[types.UID]pulls
}

// pulls are the failed pulls of a Pod.
type pulls struct {
	failed int
	// failing is true from a failed pull until the kubelet backs off.
	failing bool
}

// enoughPulls is how many failed pulls of a Pod end the wait.
const enoughPulls = 2

// next counts what a Pod reports now. Of a Pod that backs off at first sight, one failed.
func (p pulls) next(pod *corev1.Pod) pulls {
	reason := podproblem.PullReason(pod)
	switch reason {
	case "":
		p.failing = false
	case "ErrImageNeverPull", "InvalidImageName": // Nothing else will come.
		p = pulls{failed: enoughPulls, failing: true}
	case "ImagePullBackOff":
		p = pulls{failed: max(p.failed, 1)}
	default:
		if !p.failing {
			p.failed++
		}
		p.failing = true
	}
	return p
}

// lookAtPods watches the Pods and reports problems until explain is called. The context
// that it returns ends with a *PullError when an image could not be pulled repeatedly.
func (r *Runner) lookAtPods(ctx context.Context, say Say, targets []apply.Target) (context.Context, *podLook) {
	ctx, stop := context.WithCancelCause(ctx)
	look := &podLook{stop: stop, problems: map[client.ObjectKey]string{}, pulls: map[types.UID]pulls{}}
	for _, target := range targets {
		deployment, ok := target.Object.(*appsv1.Deployment)
		if !ok {
			continue
		}
		look.wg.Go(func() {
			for {
				look.once(ctx, r.Client, client.ObjectKeyFromObject(deployment), say)
				select {
				case <-ctx.Done():
					return
				case <-r.Clock.After(PollInterval):
				}
			}
		})
	}
	return ctx, look
}

func (l *podLook) once(ctx context.Context, reader client.Reader, key client.ObjectKey, say Say) {
	var deployment appsv1.Deployment
	if err := reader.Get(ctx, key, &deployment); err != nil {
		return // The wait itself reports it.
	}
	pods, err := podproblem.Pods(ctx, reader, &deployment)
	if err != nil {
		return
	}
	problem, fresh := l.note(key, &deployment, pods)
	if fresh && problem != "" {
		say("%s", problem)
	}
}

// note records the problem of the first Pod that has one, and reports whether it is new.
func (l *podLook) note(key client.ObjectKey, d *appsv1.Deployment, pods []corev1.Pod) (problem string, fresh bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range pods {
		found := podproblem.Of(&pods[i])
		if problem == "" {
			problem = found
		}
		// The Pods of an earlier image are about to be replaced.
		if found == "" || !sameImages(&pods[i].Spec, &d.Spec.Template.Spec) {
			continue
		}
		count := l.pulls[pods[i].UID].next(&pods[i])
		l.pulls[pods[i].UID] = count
		if count.failed >= enoughPulls {
			l.stop(&PullError{Problem: found})
		}
	}
	fresh = problem != l.problems[key]
	l.problems[key] = problem
	return problem, fresh
}

func sameImages(a, b *corev1.PodSpec) bool {
	return slices.EqualFunc(a.Containers, b.Containers, func(a, b corev1.Container) bool { return a.Image == b.Image })
}

// explain adds the problems to the error of a wait that ended too early.
func (l *podLook) explain(err error) error {
	l.stop(nil)
	l.wg.Wait()
	if pull, ok := errors.AsType[*PullError](err); ok {
		return pull
	}
	wait, ok := errors.AsType[*apply.WaitError](err)
	if !ok {
		return err
	}
	for i := range wait.Unmet {
		unmet := &wait.Unmet[i]
		problem := l.problems[client.ObjectKey{Namespace: unmet.Object.Namespace, Name: unmet.Object.Name}]
		if unmet.Object.Kind.Kind == "Deployment" && problem != "" {
			unmet.Message += "; " + problem
		}
	}
	return err
}
