package removal

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/legacy"
)

// Mode is what happens to the pull secrets.
type Mode string

// The modes.
const (
	// Unused deletes them, unless a Pod names one.
	Unused Mode = "unused"
	// Used deletes them although Pods name them.
	Used Mode = "used"
	// Keep detaches them and deletes none.
	Keep Mode = "keep"
)

// InUseError reports pull secrets that Pods name: the next pull of these Pods may fail without
// them.
type InUseError struct{ Pods []types.NamespacedName }

// Error implements error.
func (e *InUseError) Error() string { return "Pods name a pull secret" }

// Check returns an *InUseError in mode Unused if Pods name a pull secret.
func (m Mode) Check(left Left) error {
	if m != Unused || len(left.Pods) == 0 {
		return nil
	}
	return &InUseError{Pods: left.Pods}
}

// Say reports progress, as a format and its arguments.
type Say func(format string, args ...any)

// Run releases the legacy pull secrets of OpenShift, whose deletion would wait for the
// controller, then detaches and deletes the pull secrets that find returns. The controller
// must be stopped.
func Run(ctx context.Context, c client.Client, mode Mode, find func(context.Context, client.Reader) (Left, error), say Say) error {
	held, err := legacy.Held(ctx, c)
	if err != nil {
		return err
	}
	if err := legacy.Release(ctx, c, held); err != nil {
		return err
	}
	left, err := find(ctx, c)
	if err != nil {
		return err
	}
	say("%d ServiceAccounts list one", len(left.Accounts))
	if err := left.Detach(ctx, c); err != nil || mode == Keep {
		return err
	}
	if err := mode.Check(left); err != nil { // Pods that were created meanwhile.
		return err
	}
	say("%d Secrets are deleted", len(left.Secrets))
	return left.Delete(ctx, c)
}
