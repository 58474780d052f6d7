package rulestore

import (
	"cmp"
	"context"
	"errors"
	"io/fs"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apis/tokenexchange/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/config"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/policy"
)

// Mode is how far a change of the rules goes.
type Mode int

// The modes.
const (
	// Write stores a change.
	Write Mode = iota
	// Try has the API server check a change. The client of the Store sends dry-run requests.
	Try
	// Preview only computes a change.
	Preview
)

// Self is the ServiceAccount of the token authorizer on a hub.
func Self() policy.Account {
	return policy.Account{Namespace: names.HubNamespace, Name: names.TokenAuthorizer}
}

// Store reads and changes the rules on a hub, or reads them from the file of a token
// authorizer without a hub.
type Store struct {
	// Mode is how far changes go.
	Mode Mode
	// ForceConflicts takes fields over from other field managers.
	ForceConflicts bool

	file string
	hub  client.WithWatch // nil for a file
}

// OnHub returns the rules on a hub.
func OnHub(hub client.WithWatch) *Store { return &Store{hub: hub} }

// InFile returns the rules in a file. They cannot be changed.
func InFile(path string) *Store { return &Store{file: path} }

// String names the store.
func (s *Store) String() string { return cmp.Or(s.file, "the hub") }

// Hub returns the client of the hub, nil for a file.
func (s *Store) Hub() client.WithWatch { return s.hub }

// Options returns those with which a token authorizer reads the rules.
func (s *Store) Options() config.Options {
	if s.hub != nil {
		return config.Options{Self: Self()}
	}
	return config.Options{}
}

// FileMissingError reports that the file of a Store does not exist.
type FileMissingError struct{ File string }

// Error implements error.
func (e *FileMissingError) Error() string { return "there is no file " + e.File }

// NotServedError reports a hub without TokenExchangePolicies.
type NotServedError struct{ Cause error }

// Error implements error.
func (e *NotServedError) Error() string {
	return "the hub has no TokenExchangePolicies: an older release runs there"
}

// Unwrap returns what the client reported.
func (e *NotServedError) Unwrap() error { return e.Cause }

// Config returns the configuration that a token authorizer with these rules has. The error is
// a *FileMissingError or a *NotServedError if there are no rules to read.
func (s *Store) Config(ctx context.Context, opts config.Options) (*config.Config, error) {
	if s.hub == nil {
		c, err := config.Load(s.file, opts)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, &FileMissingError{File: s.file}
		}
		return c, err
	}
	objects, err := s.objects(ctx)
	if err != nil {
		return nil, err
	}
	return config.FromHub(objects, opts), nil
}

// Lint returns what is invalid or risky about the rules.
func (s *Store) Lint(ctx context.Context, opts config.Options) ([]policy.Finding, error) {
	cfg, err := s.Config(ctx, opts)
	if invalid, ok := errors.AsType[*config.InvalidError](err); ok {
		return invalid.Findings, nil
	}
	if err != nil {
		return nil, err
	}
	return cfg.Lint(), nil
}

// Audiences returns those that the tokens of a cluster must have: its own, or the defaults.
func (s *Store) Audiences(ctx context.Context, cluster string) ([]string, error) {
	objects, err := s.around(ctx, cluster)
	if err != nil {
		return nil, err
	}
	for i := range objects.Policies {
		if own := objects.Policies[i].Spec.Audiences; objects.Policies[i].Namespace == cluster && len(own) > 0 {
			return own, nil
		}
	}
	if objects.Defaults == nil {
		return nil, nil
	}
	return objects.Defaults.Spec.Audiences, nil
}

// around reads the rules on the hub that matter to one cluster: all of them or, for
// those who may see no others, the cluster's own and the defaults if they may.
func (s *Store) around(ctx context.Context, cluster string) (config.Objects, error) {
	objects, err := s.objects(ctx)
	if !apierrors.IsForbidden(err) {
		return objects, err
	}
	own := &v1alpha1.TokenExchangePolicy{}
	switch err := s.hub.Get(ctx, client.ObjectKey{Namespace: cluster, Name: v1alpha1.Name}, own); {
	case err == nil:
		objects.Policies = []v1alpha1.TokenExchangePolicy{*own}
	case !apierrors.IsNotFound(err):
		return objects, err
	}
	defaults := &v1alpha1.TokenExchangeDefaults{}
	if err := s.hub.Get(ctx, client.ObjectKey{Name: v1alpha1.Name}, defaults); err == nil {
		objects.Defaults = defaults
	}
	return objects, nil
}

// objects reads all rules on the hub.
func (s *Store) objects(ctx context.Context) (config.Objects, error) {
	objects, err := tokenauthorizer.Objects(ctx, s.hub)
	if apimeta.IsNoMatchError(err) {
		return objects, &NotServedError{Cause: err}
	}
	return objects, err
}
