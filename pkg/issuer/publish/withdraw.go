package publish

import (
	"context"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
)

// Withdrawal takes back what an earlier publisher of the cluster left on the
// hub. It is a manager.Runnable that ends when nothing is left.
type Withdrawal struct {
	config Config
	hub    *place
}

// NewWithdrawal returns a withdrawal; of config the source is not needed.
func NewWithdrawal(config Config) (*Withdrawal, error) {
	hub, err := newPlace(config)
	if err != nil {
		return nil, err
	}
	return &Withdrawal{config: config, hub: hub}, nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (w *Withdrawal) NeedLeaderElection() bool { return true }

// Start implements manager.Runnable.
func (w *Withdrawal) Start(ctx context.Context) error {
	p := &Publisher{config: w.config, hub: w.hub}
	backoff := credential.Backoff{First: settle, Most: period}
	for failures := 1; ctx.Err() == nil; failures++ {
		err := w.hub.remove(ctx)
		if err == nil {
			if w.config.Report != nil {
				w.config.Report.Withdrawn(ctx)
			}
			return nil
		}
		w.config.Log.Info("The issuer of this cluster is still published", "reason", err.Error())
		p.pause(ctx, backoff.Delay(failures, w.config.Cluster))
	}
	return nil
}
