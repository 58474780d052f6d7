package executor

import (
	"context"
	"errors"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// ErrNotAllowed is wrapped by the error for an executor without permission. A change of
// its permissions is not noticed: it must be checked again.
var ErrNotAllowed = errors.New("not allowed")

// Checker checks executors.
type Checker struct {
	// Reviews creates access reviews.
	Reviews client.Client
	// Config is the agent's connection, which may impersonate executors.
	Config *rest.Config
}

// Request is a request that the work agent is about to send.
type Request struct {
	Resource schema.GroupVersionResource
	Manifest *unstructured.Unstructured
	// Owned is true if the object is deleted with its ManifestWork.
	Owned bool
}

// Check returns nil if executor, which may be nil, has every permission that the request
// may need with any strategy, and with an object that exists or does not.
func (c *Checker) Check(ctx context.Context, executor *workv1.ManifestWorkExecutor, r Request) error {
	if executor == nil {
		return nil
	}
	account, err := subject(*executor)
	if err != nil {
		return err
	}
	return c.review(ctx, account, r)
}

// Client returns the client that objects are written and read with: the API server asks
// for each request of it what executor may do, also what an RBAC object may grant, which an
// access review does not look at. It returns fallback without an executor. An executor that
// Check refuses is an error.
func (c *Checker) Client(executor *workv1.ManifestWorkExecutor, fallback dynamic.Interface) (dynamic.Interface, error) {
	if executor == nil {
		return fallback, nil
	}
	account, err := subject(*executor)
	if err != nil {
		return nil, err
	}
	config := rest.CopyConfig(c.Config)
	config.Impersonate.UserName = names.ServiceAccountUser(account.Namespace, account.Name)
	impersonating, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("prepare to impersonate the executor: %w", err)
	}
	return impersonating, nil
}

// Explain returns ErrNotAllowed, with the answer of the API server, in place of an error
// that says that a request of Client is forbidden, and every other error as it is.
func (c *Checker) Explain(executor *workv1.ManifestWorkExecutor, r Request, err error) error {
	if executor == nil || executor.Subject.ServiceAccount == nil || !apierrors.IsForbidden(err) {
		return err
	}
	return denial(*executor.Subject.ServiceAccount, r, err.Error())
}

// subject returns the ServiceAccount that an executor names.
func subject(executor workv1.ManifestWorkExecutor) (workv1.ManifestWorkSubjectServiceAccount, error) {
	switch s := executor.Subject; {
	case s.Type != workv1.ExecutorSubjectTypeServiceAccount:
		return workv1.ManifestWorkSubjectServiceAccount{}, fmt.Errorf("%w: executors of type %q are unknown; use %s", ErrNotAllowed, s.Type, workv1.ExecutorSubjectTypeServiceAccount)
	case s.ServiceAccount == nil:
		return workv1.ManifestWorkSubjectServiceAccount{}, fmt.Errorf("%w: the executor names no ServiceAccount", ErrNotAllowed)
	default:
		return *s.ServiceAccount, nil
	}
}

// verbs are the requests of the agent about an object. Deletion is part of the first check,
// because the ManifestWork may be gone when the object is deleted.
func (r Request) verbs() []string {
	verbs := []string{"create", "update", "patch", "get"}
	if r.Owned {
		verbs = append(verbs, "delete")
	}
	return verbs
}

// review asks the API server for each verb.
func (c *Checker) review(ctx context.Context, account workv1.ManifestWorkSubjectServiceAccount, r Request) error {
	for _, verb := range r.verbs() {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User:   names.ServiceAccountUser(account.Namespace, account.Name),
			Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + account.Namespace, "system:authenticated"},
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Group: r.Resource.Group, Version: r.Resource.Version, Resource: r.Resource.Resource,
				Namespace: r.Manifest.GetNamespace(), Name: r.Manifest.GetName(), Verb: verb,
			},
		}}
		if err := c.Reviews.Create(ctx, review); err != nil {
			return fmt.Errorf("review the access of the executor: %w", err)
		}
		if !review.Status.Allowed {
			return denial(account, r, "it may not "+verb+" it")
		}
	}
	return nil
}

func denial(account workv1.ManifestWorkSubjectServiceAccount, r Request, why string) error {
	object := r.Resource.GroupResource().String() + " " + r.Manifest.GetName()
	if namespace := r.Manifest.GetNamespace(); namespace != "" {
		object += " in namespace " + namespace
	}
	return fmt.Errorf("%w: the executor %s/%s may not apply %s: %s", ErrNotAllowed, account.Namespace, account.Name, object, why)
}
