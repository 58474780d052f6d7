package apply

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// retryInterval is the pause before an object is listed again after its watch
// ended or the API server did not answer.
const retryInterval = 500 * time.Millisecond

// Target is an object and what to wait for.
type Target struct {
	// Object names the object; only its kind, namespace and name are read.
	Object client.Object
	// Check says when the wait is over.
	Check Check
}

// Waiter waits for objects.
type Waiter struct {
	// Client lists and watches.
	Client client.WithWatch
	// Clock paces retries. The default is the real clock.
	Clock clock.Clock
	// Progress, if set, is called whenever the reason to wait for an object
	// changes, from several goroutines.
	Progress func(object Ref, message string)
}

// Wait returns when every target is in its wanted state. It returns early,
// with a *WaitError that wraps ErrFailed, when one has failed for good, and
// with a *WaitError that wraps ctx's error when ctx ends first. A watch that
// ends and an API server that is away for a while do not end the wait; a
// refused permission does.
func (w *Waiter) Wait(ctx context.Context, targets ...Target) error {
	unmet := make([]Unmet, len(targets))
	group, groupCtx := errgroup.WithContext(ctx)
	for i, target := range targets {
		group.Go(func() error {
			one, err := w.newWait(target)
			if err != nil {
				return err
			}
			err = one.run(groupCtx)
			unmet[i] = one.unmet
			return err
		})
	}
	cause := group.Wait()
	if cause == nil {
		return nil
	}
	if ctx.Err() != nil && !errors.Is(cause, ErrFailed) {
		cause = context.Cause(ctx)
	}
	return waitError(unmet, cause)
}

// waitError lists the failed objects if there are any, and otherwise those that
// were still waited for.
func waitError(unmet []Unmet, cause error) error {
	result := &WaitError{Cause: cause}
	failed := errors.Is(cause, ErrFailed)
	for _, u := range unmet {
		if u.Message != "" && (u.Failed || !failed) {
			result.Unmet = append(result.Unmet, u)
		}
	}
	if len(result.Unmet) == 0 {
		return cause
	}
	return result
}

// singleWait is the wait for one object.
type singleWait struct {
	*Waiter
	kind  schema.GroupVersionKind
	key   client.ObjectKey
	check Check
	unmet Unmet
}

func (w *Waiter) newWait(target Target) (*singleWait, error) {
	gvk, err := apiutil.GVKForObject(target.Object, w.Client.Scheme())
	if err != nil {
		return nil, fmt.Errorf("kind of %s: %w", client.ObjectKeyFromObject(target.Object), err)
	}
	key := client.ObjectKeyFromObject(target.Object)
	return &singleWait{
		Waiter: w, kind: gvk, key: key, check: target.Check,
		unmet: Unmet{Object: Ref{Kind: gvk, Namespace: key.Namespace, Name: key.Name}, Message: "not looked at yet"},
	}, nil
}

// run lists and watches the object until the check is done or failed.
func (s *singleWait) run(ctx context.Context) error {
	for {
		done, err := s.round(ctx)
		if done {
			s.unmet.Message = ""
			return nil
		}
		if errors.Is(err, ErrFailed) {
			return err
		}
		if err != nil && ctx.Err() == nil {
			s.note(err.Error())
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.clock().After(retryInterval):
		}
	}
}

func (s *singleWait) clock() clock.Clock {
	if s.Clock != nil {
		return s.Clock
	}
	return clock.RealClock{}
}

// round lists the object once and follows it until its watch ends.
func (s *singleWait) round(ctx context.Context) (bool, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(s.kind.GroupVersion().WithKind(s.kind.Kind + "List"))
	options := &client.ListOptions{
		Namespace:     s.key.Namespace,
		FieldSelector: fields.OneTermEqualSelector("metadata.name", s.key.Name),
	}
	if err := s.Client.List(ctx, list, options); err != nil {
		if notServed(err) {
			return s.evaluate(nil)
		}
		return false, s.classify(err)
	}
	var found *unstructured.Unstructured
	if len(list.Items) > 0 {
		found = &list.Items[0]
	}
	if done, err := s.evaluate(found); done || err != nil {
		return done, err
	}
	// The watch starts behind what the list has shown.
	options.Raw = &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()}
	watcher, err := s.Client.Watch(ctx, list, options)
	if err != nil {
		return false, s.classify(err)
	}
	defer watcher.Stop()
	return s.follow(ctx, watcher)
}

func (s *singleWait) follow(ctx context.Context, watcher watch.Interface) (bool, error) {
	for {
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case event, open := <-watcher.ResultChan():
			if !open || event.Type == watch.Error {
				return false, nil
			}
			obj, err := toUnstructured(event.Object)
			if err != nil || event.Type == watch.Bookmark || obj.GetName() != s.key.Name {
				continue
			}
			if event.Type == watch.Deleted {
				obj = nil
			}
			if done, err := s.evaluate(obj); done || err != nil {
				return done, err
			}
		}
	}
}

func (s *singleWait) evaluate(obj *unstructured.Unstructured) (bool, error) {
	result := s.check(obj)
	if result.Done {
		return true, nil
	}
	s.note(result.Message)
	if result.Failed {
		s.unmet.Failed = true
		return false, ErrFailed
	}
	return false, nil
}

// classify distinguishes transient errors from those that waiting does not resolve.
func (s *singleWait) classify(err error) error {
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		s.note(err.Error())
		s.unmet.Failed = true
		return ErrFailed
	}
	return err
}

func (s *singleWait) note(message string) {
	if message == s.unmet.Message {
		return
	}
	s.unmet.Message = message
	if s.Progress != nil {
		s.Progress(s.unmet.Object, message)
	}
}

func toUnstructured(obj runtime.Object) (*unstructured.Unstructured, error) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return u, nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, fmt.Errorf("convert: %w", err)
	}
	return &unstructured.Unstructured{Object: content}, nil
}
