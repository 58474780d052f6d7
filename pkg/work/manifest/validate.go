package manifest

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	workv1 "open-cluster-management.io/api/work/v1"
)

// MaxSize is how many bytes the manifests of a work may have in all.
const MaxSize = 500 * 1024

// Validate returns why a work must not be created: it has no manifests, they are too
// large, or one of them cannot be applied to any cluster. The messages are those of
// OCM's admission webhook.
// See docs/reference/wire-contract.md#work-validation.
func Validate(work *workv1.ManifestWork) field.ErrorList {
	path := field.NewPath("spec", "workload", "manifests")
	if len(work.Spec.Workload.Manifests) == 0 {
		return field.ErrorList{field.Required(path, "manifests should not be empty")}
	}
	var errs field.ErrorList
	if size := Size(work); size > MaxSize {
		errs = append(errs, invalid(path, fmt.Sprintf("the size of manifests is %v bytes which exceeds the %v limit", size, MaxSize)))
	}
	for _, m := range Decode(work) {
		if m.Err != nil {
			errs = append(errs, invalid(path.Index(m.Ordinal), m.Err.Error()))
		}
	}
	return errs
}

// invalid is an error without the value, which can be a Secret.
func invalid(path *field.Path, detail string) *field.Error {
	return field.Invalid(path, field.OmitValueType{}, detail)
}

// Size returns how many bytes the manifests of a work have in all, counted as OCM's
// webhook does: as encoded in protocol buffers.
func Size(work *workv1.ManifestWork) int {
	size := 0
	for i := range work.Spec.Workload.Manifests {
		size += work.Spec.Workload.Manifests[i].Size()
	}
	return size
}
