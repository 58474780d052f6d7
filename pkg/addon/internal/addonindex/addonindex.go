package addonindex

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
)

const field = "metadata.name"

// Add adds the index to a cache.
func Add(ctx context.Context, indexer client.FieldIndexer) error {
	err := indexer.IndexField(ctx, &addonv1beta1.ManagedClusterAddOn{}, field,
		func(object client.Object) []string { return []string{object.GetName()} })
	if err != nil {
		return fmt.Errorf("index of add-ons: %w", err)
	}
	return nil
}

// Named selects the add-ons of a name.
func Named(name string) client.MatchingFields { return client.MatchingFields{field: name} }
