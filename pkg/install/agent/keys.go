package agent

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/kubeconfig"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pemutil"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/lookup"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// AwaitKey waits until the agent has made the key that it asks the hub to
// certify, and returns its fingerprint. It returns "" when the agent has a
// certificate already and asks for none. What it registered with before it was to
// have one does not count.
func (r Runner) AwaitKey(ctx context.Context) (fingerprint string, err error) {
	err = r.Step(ctx, "Waiting for the agent's request", func(ctx context.Context, _ install.Say) error {
		fingerprint, err = r.key(ctx, ctx.Done())
		return err
	})
	return fingerprint, err
}

// OwnKey returns a function that returns the fingerprint of the key that the agent asks
// the hub to certify now; "" until there is one. An agent that is given another bootstrap
// kubeconfig makes another key. When the hub has issued the certificate, the agent deletes
// its pending key, and the function returns the last one that it saw, at first known.
func (r Runner) OwnKey(known string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		namespace, err := r.agentNamespace(ctx)
		if err != nil {
			return "", err
		}
		now, err := r.pendingKey(ctx, namespace)
		known = cmp.Or(now, known)
		return known, err
	}
}

// pendingKey returns the fingerprint of the key that waits for a certificate, or "". A key
// for another hub, or another address of the hub, than that of the bootstrap kubeconfig is
// one that the agent is about to replace.
func (r Runner) pendingKey(ctx context.Context, namespace string) (fingerprint string, err error) {
	pending, err := lookup.SecretData(ctx, r.Client, namespace, names.PendingCredentialSecret)
	if err != nil {
		return "", err
	}
	bootstrap, err := StoredBootstrap(ctx, r.Client)
	if err != nil && !errors.Is(err, kubeconfig.ErrInvalid) {
		return "", err
	}
	if hub := string(pending[names.KeyPendingHub]); bootstrap != nil && hub != "" && bootstrap.Digest() != hub {
		return "", nil
	}
	key, err := pemutil.ParseKey(pending[names.KeyTLSKey])
	if err != nil {
		return "", nil //nolint:nilerr // The agent makes another.
	}
	return pemutil.KeyFingerprint(key.Public())
}

// GlimpseKey is AwaitKey for a caller that does not depend on the key: when the
// agent has made none for so long, there is no error and no key.
func (r Runner) GlimpseKey(ctx context.Context, patience time.Duration) (fingerprint string, err error) {
	err = r.Step(ctx, "Waiting for the agent's key", func(ctx context.Context, say install.Say) error {
		patient, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		fingerprint, err = r.key(ctx, patient.Done())
		if err != nil && ctx.Err() == nil && patient.Err() != nil {
			say("the agent has not made it yet")
			return nil
		}
		return err
	})
	return fingerprint, err
}

// key looks for the agent's key until done.
func (r Runner) key(ctx context.Context, done <-chan struct{}) (fingerprint string, err error) {
	namespace, err := r.agentNamespace(ctx)
	if err != nil {
		return "", err
	}
	for {
		if key, err := r.pendingKey(ctx, namespace); err != nil || key != "" {
			return key, err
		}
		issued, err := r.credentialHere(ctx, namespace)
		if err != nil || len(issued[names.KeyTLSCert]) > 0 {
			return "", err
		}
		select {
		case <-done:
			return "", cmp.Or(ctx.Err(), context.DeadlineExceeded)
		case <-r.Clock.After(install.PollInterval):
		}
	}
}
