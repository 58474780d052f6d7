package awsauth

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/awsarn"
)

// Namespace and Name are where EKS reads its map; keyRoles is the part of it about
// roles.
const (
	Namespace = "kube-system"
	Name      = "aws-auth"

	keyRoles = "mapRoles"
)

// described is the name of the ConfigMap in errors.
const described = "ConfigMap " + Namespace + "/" + Name

// conflictBackoff spaces the attempts when another writer was faster. One writer
// succeeds per round; the hub controller alone writes for several clusters at a
// time, so that an attempt meets a conflict more often than not. Many attempts that
// stay close together take no longer than a few that do not, and succeed.
func conflictBackoff() wait.Backoff {
	return wait.Backoff{Steps: 40, Duration: 10 * time.Millisecond, Factor: 1.1, Jitter: 1}
}

// Store is the ConfigMap of a hub.
type Store struct {
	// Live reads from the API server, not from a cache: an edit is of the present
	// version.
	Live client.Reader
	// Client writes.
	Client client.Writer
}

// Ensure makes line the only one of its role. That there is no ConfigMap is an
// error: the permission to create it cannot be restricted to this one.
func (s Store) Ensure(ctx context.Context, line Line) error {
	return s.edit(ctx, func(text string) (string, error) { return Ensure(text, line) })
}

// Find returns the lines of a role. That there is no ConfigMap is no error.
func (s Store) Find(ctx context.Context, roleARN string) ([]Line, error) {
	stored := &corev1.ConfigMap{}
	if err := s.Live.Get(ctx, client.ObjectKey{Namespace: Namespace, Name: Name}, stored); err != nil {
		return nil, failed("read", client.IgnoreNotFound(err))
	}
	return Find(stored.Data[keyRoles], roleARN)
}

// Roles returns the roles of all lines. That there is no ConfigMap is no error.
func (s Store) Roles(ctx context.Context) ([]awsarn.Role, error) {
	stored := &corev1.ConfigMap{}
	if err := s.Live.Get(ctx, client.ObjectKey{Namespace: Namespace, Name: Name}, stored); err != nil {
		return nil, failed("read", client.IgnoreNotFound(err))
	}
	return roles(stored.Data[keyRoles])
}

// Remove removes the lines of a role. That there is no ConfigMap is no error.
func (s Store) Remove(ctx context.Context, roleARN string) error {
	err := s.edit(ctx, func(text string) (string, error) { return Remove(text, roleARN) })
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// Check returns why no line could be added to the ConfigMap, as Ensure would, and
// writes nothing.
func (s Store) Check(ctx context.Context) error {
	stored := &corev1.ConfigMap{}
	if err := s.Live.Get(ctx, client.ObjectKey{Namespace: Namespace, Name: Name}, stored); err != nil {
		return failed("read", err)
	}
	_, err := read(stored.Data[keyRoles])
	return unchangeable(err)
}

// unchangeable says what to do about a map that cannot be edited, nil if it can.
func unchangeable(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("the %s cannot be changed: %w; correct it with: kubectl -n %s edit configmap %s", described, err, Namespace, Name)
}

// edit changes mapRoles, again from the start whenever another writer was faster.
func (s Store) edit(ctx context.Context, change func(string) (string, error)) error {
	return retry.RetryOnConflict(conflictBackoff(), func() error {
		stored := &corev1.ConfigMap{}
		if err := s.Live.Get(ctx, client.ObjectKey{Namespace: Namespace, Name: Name}, stored); err != nil {
			return failed("read", err)
		}
		text, err := change(stored.Data[keyRoles])
		if err != nil {
			return unchangeable(err)
		}
		if text == stored.Data[keyRoles] {
			return nil
		}
		if stored.Data == nil {
			stored.Data = map[string]string{}
		}
		stored.Data[keyRoles] = text
		return failed("update", s.Client.Update(ctx, stored))
	})
}

// failed adds advice to an error of the API server; nil for no error.
func failed(verb string, err error) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%w; create it with: kubectl -n %s create configmap %s", err, Namespace, Name)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%w; allow get and update of it to the hub's registration controller", err)
	}
	return fmt.Errorf("%s the %s: %w", verb, described, err)
}
