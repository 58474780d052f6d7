package rulestore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apis/tokenexchange/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/config"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/policy"
)

// The field managers. A command owns what it writes and no more, so that commands neither
// take fields over from each other nor lose them.
const (
	managerAllow  = "kubectl-ocm-exchange-allow"
	managerIssuer = "kubectl-ocm-issuer-add"
)

// Allow appends rules to those of a cluster, or with policy.AnyCluster to those
// of the clusters without a policy. Existing rules keep their place.
func (s *Store) Allow(ctx context.Context, cluster string, rules []v1alpha1.Rule) (Change, error) {
	return s.change(ctx, cluster, managerAllow, func(o *config.Objects) (client.Object, map[string]any) {
		var list *[]v1alpha1.Rule
		var object client.Object
		if cluster == policy.AnyCluster {
			object, list = o.Defaults, &o.Defaults.Spec.Allow
		} else {
			p := find(o, cluster)
			object, list = p, &p.Spec.Allow
		}
		for _, rule := range rules {
			if !slices.ContainsFunc(*list, func(r v1alpha1.Rule) bool { return apiequality.Semantic.DeepEqual(r, rule) }) {
				*list = append(*list, rule)
			}
		}
		return object, map[string]any{"allow": *list}
	})
}

// SetIssuer sets the issuer and the keys of a cluster, which replace those that its agent
// publishes.
func (s *Store) SetIssuer(ctx context.Context, cluster, issuer string, keys *v1alpha1.Keys) (Change, error) {
	return s.change(ctx, cluster, managerIssuer, func(o *config.Objects) (client.Object, map[string]any) {
		p := find(o, cluster)
		p.Spec.Issuer, p.Spec.Keys = issuer, keys
		return p, map[string]any{"issuer": issuer, "keys": keys}
	})
}

// Remove deletes the policy of a cluster and reports whether there was one.
func (s *Store) Remove(ctx context.Context, cluster string) (bool, error) {
	p := &v1alpha1.TokenExchangePolicy{}
	if err := s.hub.Get(ctx, client.ObjectKey{Namespace: cluster, Name: v1alpha1.Name}, p); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	if s.Mode == Preview {
		return true, nil
	}
	return true, client.IgnoreNotFound(s.hub.Delete(ctx, p))
}

// find returns the policy of a cluster, a new one if there is none.
func find(o *config.Objects, cluster string) *v1alpha1.TokenExchangePolicy {
	for i := range o.Policies {
		if o.Policies[i].Namespace == cluster && o.Policies[i].Name == v1alpha1.Name {
			return &o.Policies[i]
		}
	}
	o.Policies = append(o.Policies, v1alpha1.TokenExchangePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: v1alpha1.Name}})
	return &o.Policies[len(o.Policies)-1]
}

// InvalidError reports a change with which the rules of a cluster could not be used.
type InvalidError struct {
	// Problems are the findings of severity error.
	Problems []string
	// Already is true if the rules could not be used before the change either.
	Already bool
}

// Error implements error.
func (e *InvalidError) Error() string {
	problem := "the rules would not be valid with this change"
	if e.Already {
		problem = "the rules are not valid as they are, and would not be with this change"
	}
	return problem + ": " + strings.Join(e.Problems, "\n")
}

// NoNamespaceError reports a cluster that has no namespace on the hub.
type NoNamespaceError struct{ Cluster string }

// Error implements error.
func (e *NoNamespaceError) Error() string {
	return "the hub has no namespace for a cluster " + e.Cluster
}

// OwnedError reports fields that belong to another field manager.
type OwnedError struct{ Cause error }

// Error implements error.
func (e *OwnedError) Error() string {
	return "another field manager has written these rules, and this command would overwrite them: " + e.Cause.Error()
}

// Unwrap returns the conflict.
func (e *OwnedError) Unwrap() error { return e.Cause }

// edit changes one of the objects, and returns it with the fields of its spec
// that the command owns.
type edit func(o *config.Objects) (client.Object, map[string]any)

// change makes a change: read, edit, check, write. When another client writes
// meanwhile it begins again with what that wrote.
func (s *Store) change(ctx context.Context, cluster, manager string, do edit) (Change, error) {
	patience := wait.Backoff{Steps: 12, Duration: 10 * time.Millisecond, Factor: 1.5, Jitter: 0.5}
	var out Change
	err := retry.OnError(patience, contended, func() error {
		objects, err := s.around(ctx, cluster)
		if err != nil {
			return err
		}
		if objects.Defaults == nil {
			objects.Defaults = &v1alpha1.TokenExchangeDefaults{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.Name}}
		}
		out, err = s.once(ctx, &objects, cluster, manager, do)
		return err
	})
	return out, err
}

func (s *Store) once(ctx context.Context, objects *config.Objects, cluster, manager string, do edit) (Change, error) {
	before := config.Objects{Defaults: objects.Defaults.DeepCopy()}
	for i := range objects.Policies {
		before.Policies = append(before.Policies, *objects.Policies[i].DeepCopy())
	}
	object, owned := do(objects)
	out := Change{Object: object, Config: config.FromHub(*objects, s.Options())}
	if object.GetResourceVersion() != "" {
		out.Before = same(&before, object)
	}
	if err := s.check(out, cluster, config.FromHub(before, s.Options())); err != nil || !out.Changed() {
		return out, err
	}
	return out, s.write(ctx, object, owned, manager)
}

// same finds an object among others.
func same(o *config.Objects, object client.Object) client.Object {
	if object.GetNamespace() == "" {
		return o.Defaults
	}
	return find(o, object.GetNamespace())
}

// check refuses a change with which the object could not be used, before the API
// server does in fewer words.
func (s *Store) check(c Change, cluster string, before *config.Config) error {
	errs := func(cfg *config.Config) []string {
		var out []string
		if entry, ok := cfg.Cluster(cluster); ok && entry.Name() == cluster {
			for _, f := range entry.Findings {
				if f.Severity == policy.Error {
					out = append(out, f.String())
				}
			}
		}
		return out
	}
	now := errs(c.Config)
	if len(now) == 0 {
		return nil
	}
	return &InvalidError{Problems: now, Already: len(errs(before)) > 0}
}

// write applies the fields that a command owns.
func (s *Store) write(ctx context.Context, object client.Object, owned map[string]any, manager string) error {
	if s.Mode == Preview {
		return nil
	}
	if err := s.ensure(ctx, object); err != nil {
		return err
	}
	spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&owned)
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	applied := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	kind, err := s.hub.GroupVersionKindFor(object)
	if err != nil {
		return err
	}
	applied.SetGroupVersionKind(kind)
	applied.SetNamespace(object.GetNamespace())
	applied.SetName(object.GetName())
	applied.SetResourceVersion(object.GetResourceVersion())
	opts := []client.ApplyOption{client.FieldOwner(manager)}
	if s.ForceConflicts {
		opts = append(opts, client.ForceOwnership)
	}
	err = s.hub.Apply(ctx, client.ApplyConfigurationFromUnstructured(applied), opts...)
	if s.Mode == Try && apierrors.IsNotFound(err) {
		return nil // Its namespace does not exist yet, so the server cannot try it.
	}
	if apierrors.IsConflict(err) && ownedByOther(err) {
		return &OwnedError{Cause: err}
	}
	return err
}

// ensure creates the object without any content, so that from then on a resource
// version shows whether another client writes meanwhile.
func (s *Store) ensure(ctx context.Context, object client.Object) error {
	if object.GetResourceVersion() != "" || s.Mode != Write {
		return nil
	}
	var empty client.Object = &v1alpha1.TokenExchangeDefaults{}
	if object.GetNamespace() != "" {
		empty = &v1alpha1.TokenExchangePolicy{}
	}
	empty.SetNamespace(object.GetNamespace())
	empty.SetName(object.GetName())
	err := s.hub.Create(ctx, empty, client.FieldOwner("kubectl-ocm"))
	if apierrors.IsNotFound(err) {
		return &NoNamespaceError{Cluster: object.GetNamespace()}
	}
	if err != nil {
		return err // Also that it exists by now: then all begins again.
	}
	object.SetResourceVersion(empty.GetResourceVersion())
	return nil
}

// contended reports whether another client wrote meanwhile.
func contended(err error) bool {
	return apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) && !ownedByOther(err)
}

// ownedByOther reports whether another field manager has the fields.
func ownedByOther(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Details != nil && slices.ContainsFunc(status.Status().Details.Causes, func(c metav1.StatusCause) bool {
		return c.Type == metav1.CauseTypeFieldManagerConflict
	})
}
