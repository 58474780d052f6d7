package works

import (
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	workv1alpha1 "open-cluster-management.io/api/work/v1alpha1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/delivery"
)

// Explain turns an error of a delivery into what a user reads and the exit code.
func Explain(env cli.Env, err error) error {
	if err == nil {
		return nil
	}
	if clusters, ok := errors.AsType[*delivery.ClustersError](err); ok {
		return cli.Blockedf(env.Command("accept", strings.Join(clusters.Clusters, " ")), "%v", clusters)
	}
	if invalid, ok := errors.AsType[*delivery.InvalidError](err); ok {
		return &cli.Explained{Problem: invalid.Error(), Code: cli.CodeUsage, Try: "correct the manifests; nothing was changed"}
	}
	if few, ok := errors.AsType[*delivery.TooFewError](err); ok {
		return cli.Blockedf("lower --replicas, or see the labels with: "+env.Command("get clusters -o yaml"), "%v; nothing was changed", few)
	}
	if exists, ok := errors.AsType[*delivery.ExistsError](err); ok {
		return cli.Blockedf("replace them with --overwrite; nothing was changed", "%v", exists)
	}
	if owned, ok := errors.AsType[*delivery.OwnedError](err); ok {
		return cli.Blockedf("choose another name, or change what it belongs to; nothing was changed", "%v", owned)
	}
	if undecided, ok := errors.AsType[*delivery.NoDecisionError](err); ok {
		return cli.Blockedf(env.Kubectl("get placementdecisions -n", undecided.Placement.Namespace), "%v", undecided)
	}
	if explained := explainSet(env, err); explained != nil {
		return explained
	}
	if apierrors.IsConflict(err) {
		return &cli.Explained{Problem: "the ManifestWork was changed at the same time", Try: "run the command again", Cause: err}
	}
	return err
}

// explainSet explains an error about a ManifestWorkReplicaSet; nil is for any other.
func explainSet(env cli.Env, err error) error {
	if exists, ok := errors.AsType[*delivery.SetExistsError](err); ok {
		return cli.Blockedf("replace it with --overwrite; nothing was changed", "%v", exists)
	}
	if owned, ok := errors.AsType[*delivery.SetOwnsError](err); ok {
		return cli.Blockedf(DeleteSet(env, owned.Set), "%v; nothing was changed", owned)
	}
	if other, ok := errors.AsType[*delivery.OtherPlacementError](err); ok {
		return cli.Blockedf(env.Kubectl("get manifestworkreplicaset -o yaml -n", other.Set.Namespace, other.Set.Name), "%v; nothing was changed", other)
	}
	return nil
}

// DeleteSet is the command that deletes a ManifestWorkReplicaSet.
func DeleteSet(env cli.Env, set *workv1alpha1.ManifestWorkReplicaSet) string {
	if len(set.Spec.PlacementRefs) == 0 {
		return env.Kubectl("delete manifestworkreplicaset -n", set.Namespace, set.Name)
	}
	return env.Command("delete work", set.Name, "--placement", set.Namespace+"/"+set.Spec.PlacementRefs[0].Name, "--replicaset")
}
