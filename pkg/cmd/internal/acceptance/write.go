package acceptance

import (
	"context"
	"fmt"
	"maps"

	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// brief reports whether something that is missing comes within seconds, as a rule.
func (m Missing) brief() bool {
	return m == Certificate || m == Grant || m == Report || m == Revocation
}

// suspend denies a cluster that is to register otherwise: the hub lets nobody
// change how an accepted cluster registers. From here to the next acceptance no
// agent has rights, and bootstrap identities may not update a ManagedCluster, so
// that nobody but an administrator decides who is next.
func (r *Runner) suspend(ctx context.Context, f Facts) error {
	return r.update(ctx, f.Cluster, func(cluster *clusterv1.ManagedCluster) { cluster.Spec.HubAcceptsClient = false })
}

// accept sets hubAcceptsClient, and in the same write how the cluster registers.
func (r *Runner) accept(ctx context.Context, f Facts, v Verdict) error {
	err := r.update(ctx, f.Cluster, func(cluster *clusterv1.ManagedCluster) {
		cluster.Spec.HubAcceptsClient = *v.Accept
		if *v.Accept {
			delete(cluster.Annotations, names.AnnotationLeft)
		}
		if v.Change != nil {
			maps.DeleteFunc(cluster.Annotations, func(key, _ string) bool { return registers(key) })
			for key, value := range v.Change {
				if registers(key) {
					cluster.Annotations[key] = value
				}
			}
		}
	})
	if err != nil && v.Change != nil {
		return &cli.Explained{
			Problem: fmt.Sprintf("the hub denies cluster %s until it is accepted with another way to register", f.Name),
			Try:     "run the same command again", Cause: err,
		}
	}
	return err
}

// update changes the cluster that the decision was about: one that was deleted and
// made again since, or registers otherwise by now, is another.
func (r *Runner) update(ctx context.Context, decided *clusterv1.ManagedCluster, change func(*clusterv1.ManagedCluster)) error {
	seen := decided.DeepCopy()
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		live := &clusterv1.ManagedCluster{}
		if err := r.Client.Get(ctx, client.ObjectKeyFromObject(seen), live); err != nil {
			return err
		}
		if live.UID != seen.UID || !names.SameRegistration(live.Annotations, seen.Annotations) {
			return cli.Blockedf("run the command again", "the cluster changed while this command ran")
		}
		patch := client.MergeFromWithOptions(live.DeepCopy(), client.MergeFromWithOptimisticLock{})
		if live.Annotations == nil {
			live.Annotations = map[string]string{}
		}
		change(live)
		if err := r.Client.Patch(ctx, live, patch); err != nil {
			return err
		}
		*decided = *live
		return nil
	})
	if err != nil {
		return fmt.Errorf("cluster %s: %w", seen.Name, err)
	}
	return nil
}
