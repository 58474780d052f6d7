package mergepatch

import (
	"context"
	"encoding/json"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// conflictDelay is the time after which the cache has caught up with a conflicting write.
const conflictDelay = 100 * time.Millisecond

// Fields are fields of an object by section: metadata, spec or status.
type Fields map[string]map[string]any

// Write writes fields of an object, and fails with a conflict if the object has changed
// since it was read. Fields of the status are written to its subresource. Write updates
// object to the API server's response.
func Write(ctx context.Context, c client.Client, owner client.FieldOwner, object client.Object, fields Fields) error {
	if fields["metadata"] == nil {
		fields["metadata"] = map[string]any{}
	}
	fields["metadata"]["uid"], fields["metadata"]["resourceVersion"] = object.GetUID(), object.GetResourceVersion()
	data, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	patch := client.RawPatch(types.MergePatchType, data)
	if fields["status"] != nil {
		return c.Status().Patch(ctx, object, patch, owner)
	}
	return c.Patch(ctx, object, patch, owner)
}

// Settled turns a conflict into a retry after conflictDelay: several writers share
// the object, so a conflict is expected and is not logged as an error.
func Settled(result ctrl.Result, err error) (ctrl.Result, error) {
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: conflictDelay}, nil
	}
	return result, err
}
