package publish

import (
	"context"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pause"
)

// Withdrawal takes back what an earlier publisher of the cluster left on the
// hub. It is a manager.Runnable that ends when nothing is left.
type Withdrawal struct{ *Publisher }

// NewWithdrawal returns a withdrawal; of config the source is not needed.
func NewWithdrawal(config Config) (Withdrawal, error) {
	p, err := New(config)
	return Withdrawal{p}, err
}

// Start implements manager.Runnable.
func (w Withdrawal) Start(ctx context.Context) error {
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
		pause.For(ctx, w.config.Clock, backoff.Delay(failures, w.config.Cluster))
	}
	return nil
}
