package refresh

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pause"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/inventory"
)

// interval is how long Await waits between two reads of a pull secret.
const interval = time.Second

// NoPullSecretError reports a ServiceAccount without a pull secret that can be refreshed.
type NoPullSecretError struct{ Account types.NamespacedName }

// Error implements error.
func (e *NoPullSecretError) Error() string {
	return "ServiceAccount " + e.Account.String() + " has no pull secret with a bound token"
}

// All returns the pull secrets of a preset.
func All(ctx context.Context, c client.Reader, preset inventory.Preset, now time.Time) ([]inventory.PullSecret, error) {
	return read(ctx, c, "", preset, now)
}

// Of returns the pull secrets of ServiceAccounts. The error about an account without one is a
// *NoPullSecretError.
func Of(ctx context.Context, c client.Reader, accounts []types.NamespacedName, preset inventory.Preset, now time.Time) ([]inventory.PullSecret, error) {
	var namespaces []string
	for _, account := range accounts {
		namespaces = append(namespaces, account.Namespace)
	}
	slices.Sort(namespaces)
	var chosen []inventory.PullSecret
	for _, namespace := range slices.Compact(namespaces) {
		found, err := read(ctx, c, namespace, preset, now)
		if err != nil {
			return nil, err
		}
		for _, secret := range found {
			if slices.Contains(accounts, accountOf(secret)) {
				chosen = append(chosen, secret)
			}
		}
	}
	for _, account := range accounts {
		if !slices.ContainsFunc(chosen, func(p inventory.PullSecret) bool { return accountOf(p) == account }) {
			return nil, &NoPullSecretError{Account: account}
		}
	}
	return chosen, nil
}

// read returns the pull secrets of a namespace that have bound tokens.
func read(ctx context.Context, c client.Reader, namespace string, preset inventory.Preset, now time.Time) ([]inventory.PullSecret, error) {
	found, err := inventory.Read(ctx, c, namespace, preset, now)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(found.Secrets, func(p inventory.PullSecret) bool { return p.State == inventory.StateLegacy }), nil
}

// accountOf returns the ServiceAccount of a pull secret.
func accountOf(secret inventory.PullSecret) types.NamespacedName {
	return types.NamespacedName{Namespace: secret.Namespace, Name: secret.ServiceAccount}
}

// Request requests new tokens. The controller gives one to a pull secret without a token anyway.
func Request(ctx context.Context, c client.Client, chosen []inventory.PullSecret) error {
	for _, secret := range chosen {
		if secret.Issued == nil {
			continue
		}
		name := types.NamespacedName{Namespace: secret.Namespace, Name: secret.Name}
		if err := imagepull.RequestRefresh(ctx, c, name, *secret.Issued); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

// Await waits for one pull secret after the other until it has another token or no longer
// exists. Before each one it calls progress with how many are done.
func Await(ctx context.Context, c client.Reader, clk clock.WithTicker, chosen []inventory.PullSecret, progress func(done int)) error {
	for i := range chosen {
		progress(i)
		for done := false; !done; {
			var err error
			if done, err = refreshed(ctx, c, &chosen[i], clk.Now()); err != nil {
				return err
			}
			if !done && !pause.For(ctx, clk, interval) {
				return ctx.Err()
			}
		}
	}
	return nil
}

// refreshed reports whether a pull secret has another token than before, or no longer exists.
func refreshed(ctx context.Context, c client.Reader, before *inventory.PullSecret, at time.Time) (bool, error) {
	now, err := inventory.Get(ctx, c, types.NamespacedName{Namespace: before.Namespace, Name: before.Name}, at)
	if now == nil || err != nil {
		return err == nil, err
	}
	return now.Usable && now.Issued != nil && (before.Issued == nil || now.Issued.After(*before.Issued)), nil
}
