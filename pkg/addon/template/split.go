package template

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/internal/addonwork"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/manifest"
)

// maxSize is the size up to which a work gets further manifests. The rest of what a work
// may have is left for its status and for the next versions of its manifests.
const maxSize = manifest.MaxSize * 8 / 10

// A manifest stays in its ManifestWork. If it moved, the work agent could process the
// ManifestWork that loses it first, and delete the object with its content, such as a
// namespace. A manifest that has to move, because its ManifestWork has grown too large,
// leaves it only when the other one has been applied: until then the object belongs to
// both.

// split makes as many works as the manifests of an add-on need.
func split(addOn *addonv1beta1.ManagedClusterAddOn, options workv1.ManifestWorkSpec, manifests []workv1.Manifest, live []*workv1.ManifestWork) ([]*workv1.ManifestWork, error) {
	numbers, err := assign(manifests, numbersOf(addOn.Name, live))
	if err != nil {
		return nil, err
	}
	parts := map[int][]workv1.Manifest{}
	for i, n := range numbers {
		parts[n] = append(parts[n], manifests[i])
	}
	var works []*workv1.ManifestWork
	for _, n := range slices.Compact(slices.Sorted(slices.Values(numbers))) {
		work, err := newWork(addOn, names.AddOnDeployWork(addOn.Name, n), options, parts[n])
		if err != nil {
			return nil, err
		}
		works = append(works, work)
	}
	return works, nil
}

// numbersOf returns the number of the work in which each object is, the lowest of those
// in which it is.
func numbersOf(addOn string, live []*workv1.ManifestWork) map[string]int {
	numbers := map[string]int{}
	for _, work := range live {
		n, err := strconv.Atoi(strings.TrimPrefix(work.Name, prefix(addOn)))
		if err != nil {
			continue
		}
		for _, m := range work.Spec.Workload.Manifests {
			object := addonwork.Object(m)
			if other, known := numbers[object]; !known || n < other {
				numbers[object] = n
			}
		}
	}
	return numbers
}

// prefix is how the names of the works begin that deploy an add-on.
func prefix(addOn string) string { return strings.TrimSuffix(names.AddOnDeployWork(addOn, 0), "0") }

// assign returns the number of the work for each manifest, given those of the objects
// that are in one.
func assign(manifests []workv1.Manifest, before map[string]int) ([]int, error) {
	const none = -1
	numbers := make([]int, len(manifests))
	sizes, losing := map[int]int{}, map[int]bool{}
	for i := range manifests {
		size := manifests[i].Size()
		if size > manifest.MaxSize {
			return nil, fmt.Errorf("a manifest has %d bytes, more than the %d of a ManifestWork", size, manifest.MaxSize)
		}
		n, known := before[addonwork.Object(manifests[i])]
		switch {
		case !known:
			numbers[i] = none
		case sizes[n]+size > manifest.MaxSize:
			numbers[i], losing[n] = none, true
		default:
			numbers[i] = n
			sizes[n] += size
		}
	}
	for i := range manifests {
		if numbers[i] != none {
			continue
		}
		n, size := 0, manifests[i].Size()
		for losing[n] || sizes[n] > 0 && sizes[n]+size > maxSize {
			n++
		}
		numbers[i] = n
		sizes[n] += size
	}
	return numbers, nil
}

// loses reports whether a work has to stay as it is because an object of it is to be in
// another one, which has not been applied.
func loses(work *workv1.ManifestWork, want, live []*workv1.ManifestWork) bool {
	return slices.ContainsFunc(want, func(to *workv1.ManifestWork) bool {
		return to.Name != work.Name && shares(work, to) && !slices.ContainsFunc(live, func(w *workv1.ManifestWork) bool {
			return w.Name == to.Name && current(w, to) && addonwork.Applied(w, workv1.WorkApplied) == metav1.ConditionTrue
		})
	})
}

// shares reports whether two works have an object in common.
func shares(work, other *workv1.ManifestWork) bool {
	theirs := map[string]bool{}
	for _, m := range other.Spec.Workload.Manifests {
		theirs[addonwork.Object(m)] = true
	}
	return slices.ContainsFunc(work.Spec.Workload.Manifests, func(m workv1.Manifest) bool { return theirs[addonwork.Object(m)] })
}
