package labelindex

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Add indexes the objects of the kind of an example by the value of a label.
func Add(ctx context.Context, indexer client.FieldIndexer, example client.Object, label string) error {
	err := indexer.IndexField(ctx, example, field(label), func(object client.Object) []string {
		if value, ok := object.GetLabels()[label]; ok {
			return []string{value}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("index of %T by the label %s: %w", example, label, err)
	}
	return nil
}

// Is selects the objects with a value of a label that was added.
func Is(label, value string) client.MatchingFields { return client.MatchingFields{field(label): value} }

func field(label string) string { return "metadata.labels." + label }
