package install

import (
	"context"
	"errors"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apply"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/podproblem"
)

// podLook looks at the Pods of the Deployments that are waited for: a Deployment
// itself does not say that an image cannot be pulled.
type podLook struct {
	stop context.CancelFunc
	wg   sync.WaitGroup

	mu       sync.Mutex
	problems map[client.ObjectKey]string
}

// lookAtPods watches the Pods and reports problems until explain is called.
func (r *Runner) lookAtPods(ctx context.Context, say Say, targets []apply.Target) *podLook {
	ctx, stop := context.WithCancel(ctx)
	look := &podLook{stop: stop, problems: map[client.ObjectKey]string{}}
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
				case <-r.Clock.After(pollInterval):
				}
			}
		})
	}
	return look
}

func (l *podLook) once(ctx context.Context, reader client.Reader, key client.ObjectKey, say Say) {
	var deployment appsv1.Deployment
	if err := reader.Get(ctx, key, &deployment); err != nil {
		return // The wait itself reports it.
	}
	problem, err := podproblem.OfDeployment(ctx, reader, &deployment)
	if err != nil {
		return
	}
	l.mu.Lock()
	fresh := problem != l.problems[key]
	l.problems[key] = problem
	l.mu.Unlock()
	if fresh && problem != "" {
		say("%s", problem)
	}
}

// explain adds the problems to the error of a wait that ended too early.
func (l *podLook) explain(err error) error {
	l.stop()
	l.wg.Wait()
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
