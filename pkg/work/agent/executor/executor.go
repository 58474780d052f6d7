package executor

import (
	"context"
	"errors"
	"fmt"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// Request is what the work agent is about to do.
type Request struct {
	Resource schema.GroupVersionResource
	Manifest *unstructured.Unstructured
	// Owned is true if the object is deleted with its ManifestWork.
	Owned bool
}

// Check returns nil if executor, which may be nil, permits the request.
func (c *Checker) Check(ctx context.Context, executor *workv1.ManifestWorkExecutor, r Request) error {
	if executor == nil {
		return nil
	}
	subject := executor.Subject
	if subject.Type != workv1.ExecutorSubjectTypeServiceAccount {
		return fmt.Errorf("%w: executors of type %q are unknown; use %s", ErrNotAllowed, subject.Type, workv1.ExecutorSubjectTypeServiceAccount)
	}
	if subject.ServiceAccount == nil {
		return fmt.Errorf("%w: the executor names no ServiceAccount", ErrNotAllowed)
	}
	if err := c.review(ctx, *subject.ServiceAccount, r); err != nil {
		return err
	}
	return c.checkEscalation(ctx, *subject.ServiceAccount, r)
}

// verbs are what the agent may do to an object. Deletion is part of the first check,
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

// checkEscalation has the API server compare the permissions that an RBAC object grants
// with those of the executor, which an access review cannot. The API server does so
// before it looks whether the object exists.
func (c *Checker) checkEscalation(ctx context.Context, account workv1.ManifestWorkSubjectServiceAccount, r Request) error {
	if r.Resource.Group != rbacv1.GroupName || !slices.Contains([]string{"roles", "rolebindings", "clusterroles", "clusterrolebindings"}, r.Resource.Resource) {
		return nil
	}
	config := rest.CopyConfig(c.Config)
	config.Impersonate.UserName = names.ServiceAccountUser(account.Namespace, account.Name)
	executor, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("prepare to impersonate the executor: %w", err)
	}
	body := r.Manifest.DeepCopy()
	body.SetResourceVersion("") // A create with one is invalid.
	body.SetUID("")
	_, err = executor.Resource(r.Resource).Namespace(body.GetNamespace()).Create(ctx, body, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	switch {
	case err == nil, apierrors.IsAlreadyExists(err):
		return nil
	case apierrors.IsForbidden(err):
		return denial(account, r, "it grants permissions that the executor does not have")
	}
	return fmt.Errorf("check what the object grants: %w", err)
}

func denial(account workv1.ManifestWorkSubjectServiceAccount, r Request, why string) error {
	object := r.Resource.GroupResource().String() + " " + r.Manifest.GetName()
	if namespace := r.Manifest.GetNamespace(); namespace != "" {
		object += " in namespace " + namespace
	}
	return fmt.Errorf("%w: the executor %s/%s may not apply %s: %s", ErrNotAllowed, account.Namespace, account.Name, object, why)
}
