package agent

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// ensureManagedCluster creates the ManagedCluster, or updates the client
// configurations of an existing one if it may.
func (a *Agent) ensureManagedCluster(ctx context.Context, hub client.Client, s *snapshot) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	var cluster clusterv1.ManagedCluster
	err := hub.Get(ctx, client.ObjectKey{Name: s.identity.Cluster}, &cluster)
	switch {
	case apierrors.IsNotFound(err):
		return a.createManagedCluster(ctx, hub, s)
	case apierrors.IsForbidden(err):
		return nil // The bootstrap identity may not read it; the hub's administrator creates it.
	case err != nil:
		return fmt.Errorf("get ManagedCluster %s: %w", s.identity.Cluster, err)
	}
	err = a.mergeClientConfigs(ctx, hub, &cluster)
	if apierrors.IsForbidden(err) {
		return nil // The bootstrap identity may not; the cluster's own will.
	}
	return err
}

func (a *Agent) createManagedCluster(ctx context.Context, hub client.Client, s *snapshot) error {
	cluster := &clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{Name: s.identity.Cluster, Labels: a.config.Cluster.Labels, Annotations: a.config.Cluster.annotations()},
		Spec:       clusterv1.ManagedClusterSpec{ManagedClusterClientConfigs: a.config.Cluster.clientConfigs()},
	}
	if id := a.store.clusterID(ctx); id != "" {
		metav1.SetMetaDataAnnotation(&cluster.ObjectMeta, names.AnnotationClusterID, id)
	}
	s.driver.Decorate(cluster)
	err := hub.Create(ctx, cluster)
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("create ManagedCluster %s: %w", cluster.Name, err)
	}
	a.events.normal(names.EventManagedClusterCreated, "Register", "created ManagedCluster %s on the hub", cluster.Name)
	return nil
}

// mergeClientConfigs adds and updates the configured client configurations, and
// retains those of others.
func (a *Agent) mergeClientConfigs(ctx context.Context, hub client.Client, cluster *clusterv1.ManagedCluster) error {
	merged := slices.Clone(cluster.Spec.ManagedClusterClientConfigs)
	changed := false
	for _, want := range a.config.Cluster.clientConfigs() {
		i := slices.IndexFunc(merged, func(c clusterv1.ClientConfig) bool { return c.URL == want.URL })
		switch {
		case i < 0:
			merged, changed = append(merged, want), true
		case !slices.Equal(merged[i].CABundle, want.CABundle):
			merged[i], changed = want, true
		}
	}
	if !changed {
		return nil
	}
	cluster = cluster.DeepCopy()
	cluster.Spec.ManagedClusterClientConfigs = merged
	if err := hub.Update(ctx, cluster); err != nil {
		return fmt.Errorf("update the client configurations of ManagedCluster %s: %w", cluster.Name, err)
	}
	return nil
}
