package removal_test

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/removal"
)

func TestModeCheck(t *testing.T) {
	t.Parallel()
	used := removal.Left{Pods: []types.NamespacedName{{Namespace: "shop", Name: "app"}}}
	for mode, refused := range map[removal.Mode]bool{removal.Unused: true, removal.Used: false, removal.Keep: false} {
		if err := mode.Check(removal.Left{}); err != nil {
			t.Errorf("%s: %v without a Pod", mode, err)
		}
		err := mode.Check(used)
		inUse, ok := errors.AsType[*removal.InUseError](err)
		if ok != refused || refused && len(inUse.Pods) != 1 {
			t.Errorf("%s: got %v", mode, err)
		}
	}
}
