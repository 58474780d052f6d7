package approval

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/cloud"
)

// UnauthorizedError means that AWS denies the administrator's credentials a call that
// the grant or the revocation needs.
type UnauthorizedError struct {
	Cluster string
	// Caller is what AWS calls the administrator.
	Caller string
	Call   *cloud.Error
}

// Error implements error.
func (e *UnauthorizedError) Error() string {
	return fmt.Sprintf("cluster %s: AWS does not allow %s on %s to %s", e.Cluster, e.Call.Action, e.Call.Resource, e.Caller)
}

// Unwrap returns the error of the call.
func (e *UnauthorizedError) Unwrap() error { return e.Call }

// Granted and Revoked report whether the Approver has granted the AWS identity of a
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

// explainCall returns a failed call of AWS as something to wait for if it can succeed
// later.
func (a *Approver) explainCall(cluster string, err error) (waiting string, final error) {
	call, ok := errors.AsType[*cloud.Error](err)
	switch {
	case !ok:
		return "", fmt.Errorf("cluster %s: %w", cluster, err)
	case cloud.Unauthorized(err):
		return "", &UnauthorizedError{Cluster: cluster, Caller: a.Hand.Name, Call: call}
	case call.Code == "":
		return fmt.Sprintf("AWS to answer %s on %s", call.Action, call.Resource), nil
	}
	return fmt.Sprintf("AWS, which answered %s on %s with %s", call.Action, call.Resource, call.Code), nil
}

func mark(clusters *map[string]bool, name string) {
	if *clusters == nil {
		*clusters = map[string]bool{}
	}
	(*clusters)[name] = true
}
