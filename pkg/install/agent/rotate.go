package agent

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// DropCredential deletes the credential of the installed agent, which then registers under
// another agent name, with another key. When the hub has approved its request, the name that
// it had has no permissions there (docs/adr/0001-rights-of-one-agent.md). It can be called
// again after an interruption.
func (r Runner) DropCredential(ctx context.Context) error {
	namespace, err := r.agentNamespace(ctx)
	if err != nil {
		return err
	}
	// The Secret of the credential is last: the agent acts when that is gone.
	if err := r.forgetAgentName(ctx, namespace); err != nil {
		return err
	}
	for _, name := range []string{names.PendingCredentialSecret, names.HubKubeconfigSecret} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		if err := client.IgnoreNotFound(r.Client.Delete(ctx, secret)); err != nil {
			return fmt.Errorf("secret %s: %w", name, err)
		}
	}
	return nil
}

// forgetAgentName removes a generated agent name that no credential has yet.
func (r Runner) forgetAgentName(ctx context.Context, namespace string) error {
	key := client.ObjectKey{Namespace: namespace, Name: names.AgentIdentityConfigMap}
	kept := &corev1.ConfigMap{}
	err := r.Client.Get(ctx, key, kept)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("ConfigMap %s: %w", key.Name, err)
	}
	if kept.Data[names.KeyAgentName] == "" {
		return nil
	}
	patch := client.MergeFrom(kept.DeepCopy())
	delete(kept.Data, names.KeyAgentName)
	if err := r.Client.Patch(ctx, kept, patch); err != nil {
		return fmt.Errorf("ConfigMap %s: %w", key.Name, err)
	}
	return nil
}
