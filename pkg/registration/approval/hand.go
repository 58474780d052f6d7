package approval

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// UnauthorizedError means that the provider denies the administrator's credentials a call
// that the grant or the revocation needs.
type UnauthorizedError struct {
	Cluster string
	// Caller is the provider's name for the administrator.
	Caller string
	Call   driver.Call
	// By is the driver that made the call.
	By driver.Identifier
}

// Error implements error.
func (e *UnauthorizedError) Error() string {
	action, resource := e.Call.Operation()
	return fmt.Sprintf("cluster %s: %s does not allow %s on %s to %s", e.Cluster, e.Call.Provider(), action, resource, e.Caller)
}

// Unwrap returns the error of the call.
func (e *UnauthorizedError) Unwrap() error { return e.Call }

// Granted and Revoked report whether the Approver has granted the identity of a
// cluster with the administrator's credentials, or revoked it.
func (a *Approver) Granted(cluster string) bool { return a.granted[cluster] }

// Revoked is described at Granted.
func (a *Approver) Revoked(cluster string) bool { return a.revoked[cluster] }

// byHand grants or revokes with the administrator's credentials what follows from the
// decision that was just written.
func (a *Approver) byHand(ctx context.Context, f Facts, d Decision) (Decision, error) {
	written := f.Cluster != nil && f.Cluster.Spec.HubAcceptsClient == !a.Choice.Deny
	if a.Hand == nil || !written || a.DryRun != DryRunNone || a.granted[f.Name] {
		return d, nil
	}
	waiting, err := a.Hand.Reconcile(ctx, f.Cluster)
	if err != nil {
		waiting, err = a.explainCall(f.Name, err)
	}
	switch {
	case err != nil:
	case waiting != "":
		d.Awaited, d.Waiting = AwaitsGrant, waiting
	case a.Choice.Deny:
		return a.awaitRelease(f, d), nil
	default:
		mark(&a.granted, f.Name)
	}
	return d, err
}

// awaitRelease waits until the hub controller removes its finalizer from a cluster
// whose identity was revoked. The controller may have recorded a grant once more
// before it saw the denial; until the finalizer is gone, Hand revokes what is
// recorded.
func (a *Approver) awaitRelease(f Facts, d Decision) Decision {
	if slices.Contains(f.Cluster.Finalizers, names.FinalizerGrants) {
		mark(&a.revoked, f.Name)
		d.Awaited, d.Waiting = AwaitsRevocation, "the hub controller to see that nothing is granted any more"
	}
	return d
}

// explainCall returns a failed call to the provider as something to wait for if it can
// succeed later.
func (a *Approver) explainCall(cluster string, err error) (waiting string, final error) {
	call, ok := errors.AsType[driver.Call](err)
	if !ok {
		return "", fmt.Errorf("cluster %s: %w", cluster, err)
	}
	action, resource := call.Operation()
	switch {
	case call.Unauthorized():
		return "", &UnauthorizedError{Cluster: cluster, Caller: a.Hand.Name, Call: call, By: a.Drivers.Identifier(a.Hand.Granter.Type())}
	case call.Answer() == "":
		return fmt.Sprintf("%s to answer %s on %s", call.Provider(), action, resource), nil
	}
	return fmt.Sprintf("%s, which answered %s on %s with %s", call.Provider(), action, resource, call.Answer()), nil
}

func mark(clusters *map[string]bool, name string) {
	if *clusters == nil {
		*clusters = map[string]bool{}
	}
	(*clusters)[name] = true
}
